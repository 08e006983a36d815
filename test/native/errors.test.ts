import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import { adam, copyModel, grpo, load, plainSampling, rank4, rejection, rolloutGroups, scratch, stepOf, tiny, tokens } from './setup.js'

const lora = 'fixtures/golden/engine/lora/qwen3-tied/qv/adapter'

t.test('a checkpoint that is not there or not whole', async t => {
  t.match(await rejection(load('fixtures/no-such-model')), { code: 'E_CHECKPOINT', message: /no such directory/ })
  await scratch(async dir => {
    const model = join(dir, 'm')
    copyModel(tiny, model)
    writeFileSync(join(model, 'model.safetensors'), readFileSync(join(tiny, 'model.safetensors')).subarray(0, 5000))
    t.match(await rejection(load(model)), { code: 'E_CHECKPOINT', message: /model\.safetensors: .*cut off/ })
  })
})

const configs: [name: string, change: (config: Record<string, unknown>) => void, message: RegExp][] = [
  ['another architecture', c => Object.assign(c, { model_type: 'gemma' }), /model_type "gemma" is not supported/],
  [
    'unknown rope scaling',
    c => Object.assign(c, { rope_scaling: { rope_type: 'yarn', factor: 4 } }),
    /rope scaling "yarn" is not supported/,
  ],
  ['old spelling of rope scaling', c => Object.assign(c, { rope_scaling: { type: 'linear', factor: 2 } }), /rope scaling "linear"/],
  ['another activation', c => Object.assign(c, { hidden_act: 'gelu' }), /hidden_act "gelu"/],
  ['quantised weights', c => Object.assign(c, { quantization_config: { bits: 4 } }), /quantised/],
  ['sliding window', c => Object.assign(c, { use_sliding_window: true, sliding_window: 128 }), /sliding-window/],
  [
    'a shape that config.json contradicts',
    c => Object.assign(c, { intermediate_size: 80 }),
    /mlp\.gate_proj\.weight has shape \[96, 48\], config\.json asks for \[80, 48\]/,
  ],
  ['fewer layers than the file', c => Object.assign(c, { num_hidden_layers: 1 }), /tensor model\.layers\.1\..* has no place/],
  ['more layers than the file', c => Object.assign(c, { num_hidden_layers: 3 }), /no tensor model\.layers\.2\./],
  ['a missing number', c => Object.assign(c, { hidden_size: null }), /hidden_size must be a positive integer/],
]
for (const [name, change, message] of configs)
  t.test(`config: ${name}`, t =>
    scratch(async dir => {
      copyModel(tiny, join(dir, 'm'), change)
      t.match(await rejection(load(join(dir, 'm'))), { code: 'E_CHECKPOINT', message })
    }),
  )

t.test('vocabulary', async t => {
  t.match(await rejection(load(tiny, { realVocab: 201 })), { code: 'E_VOCABULARY' })
  const model = await load(tiny, { realVocab: 150 })
  t.equal(model.info.realVocab, 150)
  const score = (id: number) =>
    model.score({ sequences: [{ ids: Int32Array.of(1, id), spans: Int32Array.of(1, 2), temperature: 1 }], adapter: null })
  t.match(await rejection(score(150)), { code: 'E_VOCABULARY', message: /token id 150 .* vocabulary of 150/ })
  t.match(await rejection(score(-1)), { code: 'E_VOCABULARY' })
  t.equal((await score(149)).logprobs.length, 1)
})

t.test('adapters of another kind or shape', async t => {
  const model = await load()
  const variants: [string, (config: Record<string, unknown>) => void, RegExp][] = [
    ['IA3', c => Object.assign(c, { peft_type: 'IA3' }), /peft_type must be LORA/],
    ['DoRA', c => Object.assign(c, { use_dora: true }), /use_dora is not supported/],
    ['biases', c => Object.assign(c, { bias: 'all' }), /bias "all" is not supported/],
    ['saved modules', c => Object.assign(c, { modules_to_save: ['lm_head'] }), /modules_to_save is not supported/],
    ['a module that is no linear of ours', c => Object.assign(c, { target_modules: ['q_proj', 'lm_head'] }), /target module "lm_head"/],
    ['another rank', c => Object.assign(c, { r: 8 }), /q_proj\.lora_A\.weight has shape \[4, 48\], this model and rank need \[8, 48\]/],
    [
      'more targets than tensors',
      c => Object.assign(c, { target_modules: ['q_proj', 'k_proj', 'v_proj'] }),
      /no tensor .*k_proj\.lora_A\.weight/,
    ],
    ['fewer targets than tensors', c => Object.assign(c, { target_modules: ['q_proj'] }), /v_proj\.lora_A\.weight has no place/],
  ]
  for (const [name, change, message] of variants)
    await scratch(async dir => {
      cpSync(lora, dir, { recursive: true })
      const config = JSON.parse(readFileSync(join(dir, 'adapter_config.json'), 'utf8'))
      change(config)
      writeFileSync(join(dir, 'adapter_config.json'), JSON.stringify(config))
      t.match(await rejection(model.loadAdapter(dir)), { code: 'E_ADAPTER', message }, name)
    })
  t.match(await rejection(model.loadAdapter('fixtures')), { code: 'E_ADAPTER' }, 'no adapter there')
  const other = await load('fixtures/golden/engine/models/qwen2')
  t.match(await rejection(other.loadAdapter(lora)), { code: 'E_ADAPTER', message: /needs? \[/ }, "another model's shapes")
  const adapter = await model.newAdapter(rank4, 1n)
  t.match(await rejection(other.score({ sequences: [], adapter })), { code: 'E_ADAPTER' }, 'an adapter of another model')
  t.throws(() => other.trainer(adapter, adam), { code: 'E_ADAPTER' })
  adapter.dispose()
  t.match(await rejection(model.score({ sequences: [], adapter })), { code: 'E_ADAPTER', message: /disposed/ })
  t.match(await rejection(model.newAdapter({ ...rank4, rank: 0 }, 1n)), { code: 'E_SHAPE' })
  t.match(await rejection(model.newAdapter({ ...rank4, targets: [] }, 1n)), { code: 'E_ADAPTER' })
})

t.test('requests whose lengths do not fit', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 1n), adam)
  const broken = (change: object, index = 0) => {
    const request = stepOf(rolloutGroups(1, 2))
    Object.assign(request.groups[0]!.sequences[index]!, change)
    return rejection(trainer.train(request))
  }
  t.match(await broken({ old: new Float32Array(3) }, 1), {
    code: 'E_SHAPE',
    message: /group 0, sequence 1: old has 3 values for 13 loss tokens/,
  })
  t.match(await broken({ ref: new Float32Array(1) }), { code: 'E_SHAPE', message: /ref has 1 values/ })
  t.match(await broken({ advantages: Float32Array.of(1) }), { code: 'E_SHAPE', message: /advantages has 1 values for 2 spans/ })
  t.match(await broken({ advantages: undefined }), { code: 'E_SHAPE', message: /needs advantages/ })
  t.match(await broken({ spans: Int32Array.of(0, 4) }), { code: 'E_SHAPE', message: /first token has no predictor/ })
  t.match(await broken({ spans: Int32Array.of(5, 500) }), { code: 'E_SHAPE', message: /span \[5, 500\)/ })
  t.match(await broken({ spans: Int32Array.of(8, 10, 9, 12) }), { code: 'E_SHAPE', message: /out of order/ })
  t.match(await broken({ spans: Int32Array.of(8) }), { code: 'E_SHAPE', message: /pairs/ })
  t.match(await broken({ temperature: 0 }), { code: 'E_SHAPE', message: /temperature/ })
  t.match(await broken({ ids: new Float32Array(4) }), { code: 'E_SHAPE', message: /ids must be an Int32Array/ })
  t.match(await broken({ start: 40950 }), { code: 'E_CONTEXT', message: /does not fit the model's context of 40960/ })
  const twice = stepOf(rolloutGroups(2, 2))
  twice.groups[1]!.index = 0
  t.match(await rejection(trainer.train(twice)), { code: 'E_SHAPE', message: /same index/ })
  t.match(await rejection(trainer.train({ ...stepOf(rolloutGroups(1, 2)), loss: { ...grpo, aggregation: 'ppo' } as never })), {
    code: 'E_SHAPE',
  })
  t.equal(trainer.step, 0, 'nothing of it was a step')
})

t.test('sampling requests', async t => {
  const model = await load()
  const sampler = model.sampler({ maxBatch: 2 })
  const request = {
    ids: tokens(1, 5),
    adapter: null,
    sampling: plainSampling,
    stopIds: new Int32Array(),
    maxTokens: 4,
    seed: 1n,
    rollout: 1n,
    session: 's',
  }
  const broken = (change: object) => rejection(sampler.generate({ ...request, ...change }))
  t.match(await broken({ ids: new Int32Array() }), { code: 'E_SHAPE' })
  t.match(await broken({ ids: Int32Array.of(200) }), { code: 'E_VOCABULARY' })
  t.match(await broken({ ids: tokens(1, 40960) }), { code: 'E_CONTEXT' })
  t.match(await broken({ maxTokens: 0 }), { code: 'E_SHAPE', message: /maxTokens/ })
  t.match(await broken({ sampling: { ...plainSampling, topP: 0 } }), { code: 'E_SHAPE', message: /topP/ })
  t.match(await broken({ sampling: { ...plainSampling, temperature: -1 } }), { code: 'E_SHAPE', message: /temperature/ })
  t.match(await broken({ sampling: { ...plainSampling, topK: 1.5 } }), { code: 'E_SHAPE', message: /topK/ })
  const running = sampler.generate({ ...request, maxTokens: 1000 }) // not to be over before the next one comes
  t.match(await broken({}), { code: 'E_SESSION', message: /session s / })
  t.equal((await running).ids.length, 1000)
  await sampler.close()
  t.match(await broken({}), { code: 'E_CANCELLED', message: /closed/ })
})

t.test('optimiser states of another adapter', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 1n), adam)
  const smaller = model.trainer(await model.newAdapter({ ...rank4, rank: 2 }, 1n), adam)
  const fewer = model.trainer(await model.newAdapter({ ...rank4, targets: ['q_proj'] }, 1n), adam)
  await scratch(async dir => {
    const file = join(dir, 'state.safetensors')
    await trainer.saveState(file)
    t.match(await rejection(smaller.loadState(file)), { code: 'E_STATE', message: /another adapter's/ })
    t.match(await rejection(fewer.loadState(file)), { code: 'E_STATE', message: /this adapter needs 8/ })
    t.match(await rejection(trainer.loadState(join(tiny, 'model.safetensors'))), { code: 'E_STATE', message: /not an optimiser state/ })
    t.match(await rejection(trainer.saveState(join(dir, 'no', 'such', 'dir'))), {
      code: 'E_WRITE',
      message: /dir: its directory is not there/,
    })
    t.match(await rejection(trainer.trained.save(join(dir, 'missing'))), { code: 'E_WRITE', message: /its directory is not there/ })
  })
})

t.test('what is disposed of says so', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 1n), adam)
  trainer.dispose()
  t.match(await rejection(trainer.train(stepOf(rolloutGroups(1, 2)))), { code: 'E_DISPOSED' })
  model.dispose()
  t.match(await rejection(model.newAdapter(rank4, 1n)), { code: 'E_DISPOSED' })
})

t.test('a safetensors file appears whole or not at all', t =>
  scratch(async dir => {
    const file = join(dir, 'x.safetensors')
    const engine = loadEngine()
    engine.writeSafetensors(
      file,
      [
        { name: 'b', shape: [2, 1], values: Float32Array.of(1, -0.5) },
        { name: 'a', shape: [], values: Float32Array.of(3) },
      ],
      { note: 'é "x"' },
    )
    const read = engine.readSafetensors(file)
    t.strictSame(
      read.tensors.map(({ name, dtype, shape, values }) => [name, dtype, shape, [...values]]),
      [
        ['b', 'F32', [2, 1], [1, -0.5]],
        ['a', 'F32', [], [3]],
      ],
    )
    t.strictSame(read.metadata, { note: 'é "x"' })
    t.throws(() => engine.writeSafetensors(file, [{ name: 'a', shape: [3], values: Float32Array.of(1) }]), { code: 'E_SHAPE' })
    mkdirSync(join(dir, 'taken'))
    t.throws(() => engine.writeSafetensors(join(dir, 'taken'), []), { code: 'E_WRITE', message: /taken: cannot rename into place/ })
    t.notOk(existsSync(`${join(dir, 'taken')}.tmp.${process.pid}`), 'nothing temporary is left')
  }),
)
