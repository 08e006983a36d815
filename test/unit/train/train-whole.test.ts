import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import sft from '#cg/cli/train-sft.js'
import { loadEngine } from '#cg/engine/load.js'
import type { TrainGroup } from '#cg/engine/types.js'
import { loadChat } from '#cg/model/chat.js'
import { modelDigest } from '#cg/model/model-digest.js'
import type { Step } from '#cg/record/schema.js'
import { estimateMemory } from '#cg/train/memory-estimate.js'
import { readModelShape } from '#cg/train/model-shape.js'
import { planLines } from '#cg/train/plan.js'
import { createTokenise } from '#cg/train/tokenise.js'
import { resolveWhole } from '#cg/train/whole.js'
import { withContext } from '#cg/train/with-context.js'
import { fakeRuntime, model, scratchDir, timeless, weightedRun } from './in-process.js'
import { textRollout, texts } from './made-rollouts.js'

const checkpoint = [
  'cg.json',
  'chat_template.jinja',
  'config.json',
  'generation_config.json',
  'model.safetensors',
  'tokenizer.json',
  'tokenizer_config.json',
]
const bytes = (...path: string[]) => readFileSync(join(...path))

/** Mean loss of the rollouts `texts(count)` under a checkpoint. */
async function lossOf(dir: string, count: number): Promise<number> {
  const tokenise = createTokenise(dir, undefined)
  const groups = Array.from({ length: count }, (_, index): TrainGroup => {
    const { ids, spans } = tokenise(textRollout(index))
    const pairs = Int32Array.from(spans.flatMap(span => span.slice(0, 2)))
    return { index, sequences: [{ ids: Int32Array.from(ids), spans: pairs, temperature: 1 }] }
  })
  const loaded = await loadEngine().loadModel(dir, { backend: 'cpu', threads: 2, realVocab: 2048 })
  const adapter = await loaded.newAdapter({ rank: 1, alpha: 1, targets: ['q_proj'] }, 0n) // B = 0: the model as it is
  const request = { groups, loss: { kind: 'weighted' as const }, denominators: { rollouts: count, tokens: 1 }, maxRowsPerPass: 4096 }
  const { loss } = await loaded.trainer(adapter, { beta1: 0, beta2: 0, eps: 1, weightDecay: 0 }).evaluate(request)
  loaded.dispose()
  return loss
}

t.test('from random weights: the loss falls, and a version is the model whose loss the next step saw', async t => {
  const publish = join(scratchDir(t), 'run')
  const out = join(scratchDir(t), 'out')
  const options = { full: true, init: 'random', lr: 3e-3, batchSize: 6, epochs: 14, keep: 20, publish, out }
  const steps = await weightedRun('sft', texts(6), options)
  t.ok(Math.abs(steps[0]!.loss! - Math.log(2048)) < 0.2, `${steps[0]!.loss}: it knows nothing`)
  t.ok(steps[13]!.loss! < 0.5 * steps[0]!.loss!, `${steps[0]!.loss} to ${steps[13]!.loss}`)
  for (const version of [0, 1, 7, 13]) {
    const loss = await lossOf(join(publish, `v${String(version).padStart(6, '0')}`), 6)
    t.ok(Math.abs(loss - steps[version]!.loss!) < 1e-12, `version ${version}: ${loss}, step ${steps[version]!.loss}`)
  }
  t.strictSame(readdirSync(out).sort(), checkpoint)
  for (const name of checkpoint) t.ok(bytes(out, name).equals(bytes(publish, 'v000014', name)), name)
  for (const name of checkpoint)
    if (name !== 'model.safetensors') t.ok(bytes(out, name).equals(bytes(model, name)), `${name} is the source's`)
  t.equal(loadChat(out, { thinking: false }).tokenizer.vocab, 2048)
  const policy = JSON.parse(bytes(publish, 'v000014', 'policy.json').toString())
  t.equal(policy.sha256, await modelDigest(out), 'what it is called does not depend on the optimiser beside it')
  t.equal(policy.sha256, await modelDigest(join(publish, 'v000014')))
})

t.test('6 steps are 3 steps, and 3 more after a resume, bit for bit', async t => {
  for (const from of [{}, { init: 'random', saveDtype: 'fp32' }]) {
    const [whole, halves] = [join(scratchDir(t), 'a'), join(scratchDir(t), 'b')]
    const options = { ...from, full: true, batchSize: 3, lr: 1e-3, weightDecay: 0.1, warmup: 2 }
    const six = await weightedRun('sft', texts(6), { ...options, publish: whole, steps: 6 })
    await weightedRun('sft', texts(6), { ...options, publish: halves, steps: 3 })
    const resumed = await weightedRun('sft', texts(6), { ...options, publish: halves, resume: true, steps: 6 })
    t.strictSame(resumed.map(timeless), six.map(timeless))
    for (const name of ['model.safetensors', 'optimizer.safetensors'])
      t.ok(bytes(halves, 'v000006', name).equals(bytes(whole, 'v000006', name)), `${JSON.stringify(from)} ${name}`)
    await t.rejects(weightedRun('sft', texts(6), { ...options, saveDtype: 'bf16', publish: halves, resume: true, steps: 6 }), {
      name: 'UsageError',
      message: /--save-dtype is bf16/,
    })
    await t.rejects(weightedRun('sft', texts(6), { batchSize: 3, publish: halves, resume: true, steps: 6 }), {
      name: 'UsageError',
      message: /--full/,
    })
  }
})

t.test('a run that died at its beginning goes on from version 0', async t => {
  const [whole, cut] = [join(scratchDir(t), 'a'), join(scratchDir(t), 'b')]
  const options = { full: true, batchSize: 3, lr: 1e-3, steps: 2 }
  await weightedRun('sft', texts(6), { ...options, publish: whole })
  const dying = fakeRuntime({
    say: message => {
      if (message.startsWith('run ')) throw new Error('killed')
    },
  })
  await t.rejects(weightedRun('sft', texts(6), { ...options, publish: cut }, dying), { message: 'killed' })
  t.strictSame(
    readdirSync(cut).filter(name => name.startsWith('v')),
    ['v000000'],
  )
  await weightedRun('sft', texts(6), { ...options, publish: cut, resume: true })
  t.ok(bytes(cut, 'v000002', 'model.safetensors').equals(bytes(whole, 'v000002', 'model.safetensors')))
})

t.test('the best version goes to --out, without what training goes on with', async t => {
  const dir = scratchDir(t)
  const evalFile = join(dir, 'held-out.ndjson')
  writeFileSync(evalFile, `${JSON.stringify(textRollout(5))}\n`)
  const [publish, out] = [join(dir, 'run'), join(dir, 'out')]
  const options = { full: true, batchSize: 4, epochs: 4, lr: 0.3, evalEvery: 1, evalFile, choose: 'best', publish, out }
  const steps = await weightedRun('sft', texts(4), options)
  const losses = steps.map((s: Step) => (s.eval as { value: number }).value)
  const best = 1 + losses.indexOf(Math.min(...losses))
  t.not(best, 4, 'the last one is not the best here, or this test would show nothing')
  t.strictSame(readdirSync(out).sort(), checkpoint)
  t.ok(bytes(out, 'model.safetensors').equals(bytes(publish, `v00000${best}`, 'model.safetensors')))
})

t.test('checkpoints are stored as asked, and config.json says so', async t => {
  const dir = scratchDir(t)
  for (const [saveDtype, word, name] of [
    [undefined, 'BF16', 'bfloat16'],
    ['fp32', 'F32', 'float32'],
    ['fp16', 'F16', 'float16'],
  ]) {
    const out = join(dir, name!)
    await weightedRun('sft', texts(2), { full: true, saveDtype, out })
    const { tensors } = loadEngine().readSafetensors(join(out, 'model.safetensors'))
    t.ok(tensors.every(tensor => tensor.dtype === word))
    t.equal(JSON.parse(bytes(out, 'config.json').toString()).torch_dtype, name)
  }
})

t.test('another shape: config.json from elsewhere, tokenizer beside it or from --model', async t => {
  const dir = scratchDir(t)
  const shape = join(dir, 'shape')
  mkdirSync(shape)
  const modelConfig = join(shape, 'config.json')
  const config = {
    ...JSON.parse(bytes(model, 'config.json').toString()),
    num_hidden_layers: 1,
    intermediate_size: 96,
    tie_word_embeddings: false,
  }
  writeFileSync(modelConfig, JSON.stringify(config))
  const options = { full: true, init: 'random', modelConfig, batchSize: 2 }
  await weightedRun('sft', texts(2), { ...options, out: join(dir, 'a') })
  const loaded = await loadEngine().loadModel(join(dir, 'a'), { backend: 'cpu', threads: 1 })
  t.match(loaded.info, { layers: 1, intermediate: 96, tied: false })
  loaded.dispose()

  const beside = resolveWhole({ ...defaults(), ...(options as object), model: undefined }, () => false)
  t.equal(beside.model, shape)
  await t.rejects(weightedRun('sft', texts(2), { ...beside, out: join(dir, 'b') }), {
    code: 'E_CHECKPOINT',
    message: /tokenizer\.json is not there/,
  })
  for (const name of checkpoint.filter(file => /token|chat|generation/.test(file))) copyFileSync(join(model, name), join(shape, name))
  await weightedRun('sft', texts(2), { ...beside, prompt: 'brief', out: join(dir, 'b') })
  t.ok(bytes(dir, 'a', 'model.safetensors').equals(bytes(dir, 'b', 'model.safetensors')))

  writeFileSync(modelConfig, JSON.stringify({ ...config, vocab_size: 1000 }))
  await t.rejects(weightedRun('sft', texts(2), { ...options, out: join(dir, 'c') }), { code: 'E_VOCABULARY', message: /2048 does not fit/ })
})

function defaults() {
  return Object.fromEntries(Object.entries(sft.options).map(([name, o]) => [name, o.default])) as unknown as Parameters<
    typeof resolveWhole
  >[0]
}

t.test('what goes together, and the learning rate that is meant', async t => {
  const resolve = (options: object, ...given: string[]) => resolveWhole({ ...defaults(), ...options }, name => given.includes(name))
  t.equal(resolve({}).lr, 2e-4)
  t.equal(resolve({ full: true }).lr, 2e-5)
  t.equal(resolve({ full: true, init: 'random' }, 'init').lr, 1e-3)
  t.equal(resolve({ full: true, lr: 0.5 }).lr, 0.5)
  const cases: [options: object, given: string[], message: RegExp][] = [
    [{ full: true }, ['initAdapter'], /^--init-adapter is of adapters, and --full trains the model itself/],
    [{ full: true }, ['loraRank'], /^--lora-rank is of adapters/],
    [{ full: true }, ['loraAlpha'], /^--lora-alpha is of adapters/],
    [{ full: true }, ['loraTargets'], /^--lora-targets is of adapters/],
    [{ full: true }, ['recipe'], /^--recipe is of adapters/],
    [{ full: false }, ['init'], /^--init needs --full/],
    [{ full: false }, ['modelConfig'], /^--model-config needs --full/],
    [{ full: false }, ['saveDtype'], /^--save-dtype needs --full/],
    [{ full: true, modelConfig: 'a/config.json' }, [], /^--model-config needs --init random/],
    [{ full: true, init: 'random', modelConfig: 'a/config.json', out: 'a' }, [], /^--out would replace --model-config/],
  ]
  for (const [options, given, message] of cases) t.throws(() => resolve(options, ...given), { name: 'UsageError', message })
  await t.rejects(weightedRun('sft', texts(1), { full: true, out: join(model, '..') }), {
    name: 'UsageError',
    message: /--out would replace --model/,
  })
  const foreign = scratchDir(t)
  writeFileSync(join(foreign, 'thesis.tex'), '')
  await t.rejects(weightedRun('sft', texts(1), { full: true, out: foreign }), {
    message: /holds thesis.tex: name a new directory, or one with a model to replace/,
  })
})

t.test('--dry-run says what is trained, and what memory it takes', async t => {
  const options = { ...defaults(), model, out: 'o', full: true, init: 'random', lr: 1, batchSize: 16 } as never
  const lines = planLines('sft', options, () => false).join('\n')
  t.match(lines, /all weights, from random ones, stored as they were/)
  t.match(lines, /fp32 values of 1,181,200 parameters/)
  const shape = readModelShape(model)
  t.equal(estimateMemory(shape, undefined, 100, 16, 2 ** 30).trained, 4 * 1_181_200 * (3 + 5))
})

t.test('--context-weight gives every token a share', async t => {
  t.strictSame(withContext({ spans: [3, 5, 7, 9], weights: [1, 1] }, 11, 1), {
    spans: [1, 3, 3, 5, 5, 7, 7, 9, 9, 11],
    weights: [1, 1, 1, 1, 1],
  })
  const { spans, weights } = withContext({ spans: [1, 4, 4, 6], weights: [1, 0.5] }, 8, 0.25)
  t.strictSame(spans, [1, 4, 4, 6, 6, 8])
  const scale = 7 / (5 + 0.25 * 2)
  t.strictSame(weights, [scale, 0.5 * scale, 0.25 * scale])

  const out = scratchDir(t)
  const [without] = await weightedRun('sft', texts(3), { out })
  const [plain] = await weightedRun('sft', texts(3), { out, contextWeight: 1 })
  const [little] = await weightedRun('sft', texts(3), { out, contextWeight: 1e-9 })
  const tokens = [0, 1, 2].map(n => createTokenise(model, undefined)(textRollout(n)).ids.length - 1)
  t.equal(
    plain!.loss_tokens,
    tokens.reduce((sum, n) => sum + n, 0),
  )
  t.ok(
    Math.abs(little!.loss! - without!.loss!) < 1e-6,
    `hardly any weight: the loss is that of the turns, ${without!.loss}, ${little!.loss}`,
  )
  t.ok(Math.abs(plain!.loss! - without!.loss!) > 1e-3)
})
