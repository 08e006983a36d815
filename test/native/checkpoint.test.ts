import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import type { Model } from '#cg/engine/types.js'
import { adapterBytes, copyModel, load, rank4, rejection, scratch, tiny, tokens } from './setup.js'

async function scores(model: Model): Promise<Float32Array> {
  const ids = tokens(1, 90, 128)
  return (await model.score({ sequences: [{ ids, spans: Int32Array.of(1, 90), temperature: 1 }], adapter: null })).logprobs
}

/** Writes a checkpoint's tensors as two shards with an index. */
function shard(from: string, to: string): void {
  mkdirSync(to)
  cpSync(join(from, 'config.json'), join(to, 'config.json'))
  const tensors = loadEngine()
    .readSafetensors(join(from, 'model.safetensors'))
    .tensors.map(t => ({ ...t, values: Float32Array.from(t.values) }))
  const map: Record<string, string> = {}
  for (const [k, part] of [tensors.slice(0, 9), tensors.slice(9)].entries()) {
    const file = `model-0000${k + 1}-of-00002.safetensors`
    loadEngine().writeSafetensors(join(to, file), part)
    for (const { name } of part) map[name] = file
  }
  writeFileSync(join(to, 'model.safetensors.index.json'), JSON.stringify({ metadata: {}, weight_map: map }))
}

t.test('shards', t =>
  scratch(async dir => {
    const sharded = join(dir, 'm')
    shard(tiny, sharded)
    t.strictSame(await scores(await load(sharded)), await scores(await load()))
    const index = join(sharded, 'model.safetensors.index.json')
    const whole = readFileSync(index, 'utf8')
    writeFileSync(index, whole.replace('"model.norm.weight":"model-00002', '"model.norm.weight":"model-00001'))
    t.match(await rejection(load(sharded)), { code: 'E_CHECKPOINT', message: /tensor model\.norm\.weight is not in model-00001/ })
    writeFileSync(index, whole.replaceAll('model-00002-of', '../model-00002-of'))
    t.match(await rejection(load(sharded)), { code: 'E_CHECKPOINT', message: /is not a file name/ })
    writeFileSync(index, '{"weight_map": 3}')
    t.match(await rejection(load(sharded)), { code: 'E_CHECKPOINT', message: /no weight_map/ })
  }),
)

t.test('a later layout of config.json is the same model', t =>
  scratch(async dir => {
    copyModel(tiny, join(dir, 'a'), config => {
      Object.assign(config, { rope_parameters: { rope_type: 'default', rope_theta: config.rope_theta }, dtype: config.torch_dtype })
      for (const key of ['rope_theta', 'rope_scaling', 'torch_dtype']) delete config[key]
    })
    t.strictSame(await scores(await load(join(dir, 'a'))), await scores(await load()))
    const llama = 'fixtures/golden/engine/models/llama3-rope'
    copyModel(llama, join(dir, 'b'), config => {
      Object.assign(config, { rope_parameters: { ...(config.rope_scaling as object), rope_theta: config.rope_theta } })
      for (const key of ['rope_theta', 'rope_scaling']) delete config[key]
    })
    const stretched = await scores(await load(llama))
    t.strictSame(await scores(await load(join(dir, 'b'))), stretched)
    copyModel(llama, join(dir, 'c'), config => Object.assign(config, { rope_scaling: null }))
    t.notSame(await scores(await load(join(dir, 'c'))), stretched, 'the scaling counts')
  }),
)

t.test('what info says', async t => {
  const { info } = await load()
  t.match(info, {
    architecture: 'qwen3',
    layers: 2,
    hidden: 48,
    heads: 4,
    kvHeads: 2,
    headDim: 32,
    intermediate: 96,
    vocab: 200,
    realVocab: 200,
    tied: true,
  })
  t.match(info.logprobKind, /^ref-2\/fp32$/)
  t.equal(info.parameters, 74480)
  t.equal((await load('fixtures/golden/engine/models/qwen2')).info.headDim, 16, 'hidden / heads where config.json has no head_dim')
})

t.test('a tied head ignores a stored one; an untied model needs it', t =>
  scratch(async dir => {
    copyModel(tiny, join(dir, 'm'), config => Object.assign(config, { tie_word_embeddings: false }))
    t.match(await rejection(load(join(dir, 'm'))), { code: 'E_CHECKPOINT', message: /no tensor lm_head\.weight/ })
    const tensors = loadEngine()
      .readSafetensors(join(tiny, 'model.safetensors'))
      .tensors.map(t => ({ ...t, values: Float32Array.from(t.values) }))
    const embedding = tensors.find(t => t.name === 'model.embed_tokens.weight')!
    const file = join(dir, 'm', 'model.safetensors')
    loadEngine().writeSafetensors(file, [...tensors, { ...embedding, name: 'lm_head.weight' }])
    t.strictSame(await scores(await load(join(dir, 'm'))), await scores(await load()))
    loadEngine().writeSafetensors(file, [
      ...tensors,
      { name: 'model.layers.0.self_attn.q_proj.bias', shape: [128], values: new Float32Array(128) },
    ])
    copyModel(join(dir, 'm'), join(dir, 'n'), config => Object.assign(config, { tie_word_embeddings: true }))
    t.match(await rejection(load(join(dir, 'n'))), { code: 'E_CHECKPOINT', message: /q_proj\.bias has no place/ })
  }),
)

t.test('an adapter goes out and comes back unchanged', t =>
  scratch(async dir => {
    const model = await load()
    const adapter = await model.newAdapter({ ...rank4, alpha: 6.5, targets: ['down_proj', 'q_proj'], rslora: true }, 4n)
    await adapter.save(dir)
    const config = JSON.parse(readFileSync(join(dir, 'adapter_config.json'), 'utf8'))
    t.match(config, { peft_type: 'LORA', r: 4, lora_alpha: 6.5, use_rslora: true, bias: 'none', target_modules: ['q_proj', 'down_proj'] })
    const again = await model.loadAdapter(dir)
    t.strictSame(again.config, { rank: 4, alpha: 6.5, targets: ['q_proj', 'down_proj'], rslora: true })
    t.equal(again.parameters, 2 * (4 * 48 + 128 * 4 + 4 * 96 + 48 * 4))
    t.ok((await adapterBytes(again)).equals(await adapterBytes(adapter)))
  }),
)

t.test('a header of more than a megabyte', t =>
  scratch(async dir => {
    const file = join(dir, 'many.safetensors')
    const names = Array.from({ length: 20_000 }, (_, i) => `tensor.with.a.long.name.${i}`)
    loadEngine().writeSafetensors(
      file,
      names.map(name => ({ name, shape: [1], values: Float32Array.of(1) })),
    )
    const bytes = readFileSync(file)
    t.ok(bytes.readBigUInt64LE() > 1_000_000n)
    t.strictSame(
      loadEngine()
        .readSafetensors(file)
        .tensors.map(t => t.name),
      names,
    )
    writeFileSync(file, bytes.subarray(0, bytes.length - 4))
    t.throws(() => loadEngine().readSafetensors(file), { code: 'E_CHECKPOINT', message: /cut off/ })
  }),
)
