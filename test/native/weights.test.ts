import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import type { Model, OptimizerOptions, StepRequest, StoredType, Trained } from '#cg/engine/types.js'
import { adam, grpo, load, numbers, plainSampling, rank4, rejection, rolloutGroups, scratch, stepOf, tiny } from './setup.js'

const models = 'fixtures/golden/engine/models'
const weighted = { kind: 'weighted' } as const
const steps = Array.from({ length: 3 }, (_, k) => stepOf(rolloutGroups(3, 4, 1000 * k), weighted))

type Values = { name: string; shape: number[]; values: Float32Array }
type Tap = { ok(value: boolean, message: string): void }

async function trainer(model: Model, options: { optimizer?: OptimizerOptions; dtype?: StoredType } = {}) {
  return model.trainer(await model.weights(options.dtype ? { dtype: options.dtype } : {}), options.optimizer ?? adam)
}

function bytes(trained: Trained): Promise<Buffer> {
  return scratch(async dir => {
    await trained.save(dir)
    return readFileSync(join(dir, 'model.safetensors'))
  })
}

function tensorsOf(trained: Trained): Promise<Values[]> {
  return scratch(async dir => {
    await trained.save(dir)
    return loadEngine()
      .readSafetensors(join(dir, 'model.safetensors'))
      .tensors.map(tensor => ({ ...tensor, values: Float32Array.from(tensor.values) }))
  })
}

/** Rollouts of ids that a model of `vocab` tokens knows. */
function requestFor(vocab: number): StepRequest {
  const groups = rolloutGroups(2, 3)
  for (const group of groups) for (const sequence of group.sequences) sequence.ids = sequence.ids.map(id => id % vocab)
  return stepOf(groups, weighted)
}

/** Compares the gradient of the chosen tensors with the central difference of the loss, half along it, half at random. */
async function check(t: Tap, dir: string, values: Values[], gradient: Values[], request: StepRequest, which: RegExp) {
  const chosen = gradient.filter(g => which.test(g.name))
  const norm = Math.sqrt(chosen.reduce((sum, g) => sum + g.values.reduce((s, x) => s + x * x, 0), 0))
  const elements = chosen.reduce((sum, g) => sum + g.values.length, 0)
  const next = numbers(9)
  const direction = new Map(chosen.map(g => [g.name, g.values.map(x => x / norm + (next() - 0.5) / Math.sqrt(elements))]))
  const predicted = chosen.reduce((sum, g) => sum + g.values.reduce((s, x, i) => s + x * direction.get(g.name)![i]!, 0), 0)
  const size = 4e-3
  const lossAt = (step: number) =>
    scratch(async moved => {
      cpSync(join(dir, 'config.json'), join(moved, 'config.json'))
      const tensors = values.map(v => ({ ...v, values: v.values.map((x, i) => x + step * (direction.get(v.name)?.[i] ?? 0)) }))
      loadEngine().writeSafetensors(join(moved, 'model.safetensors'), tensors)
      return (await (await trainer(await load(moved))).evaluate(request)).loss
    })
  const measured = ((await lossAt(size)) - (await lossAt(-size))) / (2 * size)
  t.ok(
    chosen.length > 0 && Math.abs(measured - predicted) < 5e-3 * Math.abs(predicted),
    `${which.source}: ${predicted} predicted, ${measured} measured`,
  )
}

const linears = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'].map(name => `${name}\\.weight`)
const norms = ['input_layernorm', 'post_attention_layernorm', 'model\\.norm', 'embed_tokens']
const cases: [model: string, vocab: number, kinds: string[]][] = [
  ['qwen3-tied', 200, [...linears, ...norms, 'q_norm', 'k_norm', 'layers\\.0', 'layers\\.1']],
  ['qwen2', 300, ['q_proj\\.bias', 'k_proj\\.bias', 'v_proj\\.bias', 'embed_tokens']],
  ['llama3-rope', 128, ['lm_head', 'embed_tokens', 'model\\.norm', 'down_proj']],
]
for (const [name, vocab, kinds] of cases)
  t.test(`${name}: every kind of parameter against finite differences`, async t => {
    const dir = join(models, name)
    const request = requestFor(vocab)
    const training = await trainer(await load(dir))
    const values = await tensorsOf(training.trained)
    const { tensors } = await training.gradient(request)
    t.strictSame(tensors.map(g => g.name).sort(), values.map(v => v.name).sort(), 'every tensor has a gradient')
    for (const kind of kinds) await check(t, dir, values, tensors, request, new RegExp(kind))
  })

t.test('biases of all seven linears against finite differences, from random weights', t =>
  scratch(async dir => {
    const config = JSON.parse(readFileSync(join(models, 'llama3-rope/config.json'), 'utf8'))
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ ...config, attention_bias: true, mlp_bias: true, initializer_range: 0.2 }))
    const training = await trainer(await random(dir))
    const request = requestFor(128)
    const values = await tensorsOf(training.trained)
    const { tensors } = await training.gradient(request)
    for (const linear of ['q', 'v', 'o', 'gate', 'up', 'down'])
      await check(t, dir, values, tensors, request, new RegExp(`${linear}_proj\\.bias`))
  }),
)

function random(dir: string, seed = 1n, threads = 2): Promise<Model> {
  return loadEngine().randomModel(join(dir, 'config.json'), { backend: 'cpu', threads, seed })
}

async function run(model: Model, requests: StepRequest[]) {
  const training = await trainer(model)
  const stats = []
  for (const request of requests) stats.push(await training.train(request))
  return { stats, bytes: await bytes(training.trained), training }
}

t.test('1, 2 and 4 threads, both CPU backends and one out of reach give the same bits', async t => {
  const results = []
  for (const threads of [1, 2, 4]) results.push(await run(await load(tiny, { threads }), steps))
  results.push(await run(await load(tiny, { backend: 'cpu' }), steps))
  results.push(await run(await load(tiny, { backend: 'reference-remote' }), steps))
  for (const result of results) {
    t.strictSame(result.stats, results[0]!.stats)
    t.ok(result.bytes.equals(results[0]!.bytes))
  }
  t.not(results[0]!.stats[0]!.gradNorm, 0)
  t.ok(results[0]!.stats.every(({ skipped }) => !skipped))
})

t.test('every instruction set gives the same bits', t =>
  scratch(async dir => {
    const script = join(dir, 'train.mjs')
    const root = process.cwd()
    writeFileSync(
      script,
      `import { loadEngine } from ${JSON.stringify(join(root, 'dist/engine/load.js'))}
       const model = await loadEngine().loadModel(${JSON.stringify(join(root, tiny))}, { backend: 'cpu', threads: 2 })
       const trainer = model.trainer(await model.weights(), { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1 })
       const ids = Int32Array.from({ length: 300 }, (_, i) => (i * i * 31 + 7 * i) % 200)
       const groups = [{ index: 0, sequences: [{ ids, spans: Int32Array.of(20, 300), temperature: 1 }] }]
       for (let i = 0; i < 2; i++)
         await trainer.train({ groups, loss: { kind: 'weighted' }, denominators: { rollouts: 1, tokens: 280 }, lr: 1e-2, clip: 1, maxRowsPerPass: 4096 })
       await trainer.trained.save(process.argv[2])`,
    )
    const by = (isa: string | undefined) => {
      const out = join(dir, isa ?? 'widest')
      mkdirSync(out)
      execFileSync(process.execPath, [script, out], { env: { ...process.env, ...(isa === undefined ? {} : { CG_ISA: isa }) } })
      return readFileSync(join(out, 'model.safetensors'))
    }
    const widest = by(undefined)
    const { features } = loadEngine().cpu()
    for (const isa of ['scalar', ...['avx2', 'avx512'].filter(set => features.some(f => f.startsWith(set)))])
      t.ok(by(isa).equals(widest), isa)
  }),
)

for (const name of ['qwen3-tied', 'qwen3-bf16'])
  t.test(`${name}: 3 steps, save, load, 3 steps are 6 steps, bit for bit`, t =>
    scratch(async dir => {
      const source = join(models, name)
      const all = [0, 1, 2, 3, 4, 5].map(k => {
        const groups = rolloutGroups(3, 4, 1000 * k)
        for (const group of groups) for (const s of group.sequences) s.ids = s.ids.map(id => id % 192)
        return { ...stepOf(groups, weighted), lr: 1e-3 }
      })
      const whole = await run(await load(source), all)
      const first = await run(await load(source), all.slice(0, 3))
      const state = join(dir, 'state.safetensors')
      await first.training.saveState(state)

      const again = await trainer(await load(source))
      await again.loadState(state)
      t.equal(again.step, 3)
      t.ok((await bytes(again.trained)).equals(first.bytes), 'the state brings the weights')
      const stats = []
      for (const request of all.slice(3)) stats.push(await again.train(request))
      t.strictSame(stats, whole.stats.slice(3))
      t.ok((await bytes(again.trained)).equals(whole.bytes))

      const other = await load(join(models, 'llama3-rope'))
      t.match(await rejection((await trainer(other)).loadState(state)), { code: 'E_STATE', message: /this model needs|another model's/ })
      const adapter = await load(source)
      t.match(await rejection(adapter.trainer(await adapter.newAdapter(rank4, 1n), adam).loadState(state)), { code: 'E_STATE' })
    }),
  )

t.test('a written checkpoint is the model whose log-probs training saw, whatever it is stored as', async t => {
  for (const dtype of ['fp32', 'bf16', 'fp16', undefined] as (StoredType | undefined)[])
    await scratch(async dir => {
      const source = join(models, 'qwen3-bf16')
      const model = await load(source)
      const training = await trainer(model, dtype ? { dtype } : {})
      const request = { ...requestFor(192), lr: 1e-3 }
      await training.train(request)
      cpSync(join(source, 'config.json'), join(dir, 'config.json'))
      await training.trained.save(dir)
      const stored = loadEngine().readSafetensors(join(dir, 'model.safetensors')).tensors
      const word = { fp32: 'F32', bf16: 'BF16', fp16: 'F16' }[dtype ?? 'bf16']
      t.ok(stored.every(tensor => tensor.dtype === word))
      const sequences = request.groups.flatMap(group => group.sequences)
      const scored = (await model.score({ sequences, adapter: null })).logprobs
      t.strictSame((await (await load(dir)).score({ sequences, adapter: null })).logprobs, scored, word)
      t.notSame((await (await load(source)).score({ sequences, adapter: null })).logprobs, scored)
    })
})

t.test('weights decay in matrices alone', async t => {
  const still = (flat: StepRequest) => {
    for (const group of flat.groups) for (const s of group.sequences) s.advantages = Float32Array.of(0, 0)
    return { ...flat, lr: 0.5 }
  }
  const optimizer = { ...adam, weightDecay: 0.25 }
  for (const [name, vocab] of [
    ['qwen2', 300],
    ['llama3-rope', 128],
  ] as const) {
    const model = await load(join(models, name))
    const training = await trainer(model, { optimizer })
    const before = await tensorsOf(training.trained)
    const request = requestFor(vocab)
    await training.train(still({ ...request, loss: { ...grpo, kl: 0 } as typeof grpo }))
    const after = new Map((await tensorsOf(training.trained)).map(tensor => [tensor.name, tensor.values]))
    for (const { name: tensor, values } of before) {
      const factor = /proj\.weight|lm_head/.test(tensor) ? Math.fround(1 - 0.5 * 0.25) : 1
      t.strictSame(
        after.get(tensor),
        values.map(x => x * factor),
        `${name} ${tensor}`,
      )
    }
  }
})

t.test('NaN and infinity skip the step', async t => {
  const training = await trainer(await load())
  const start = await bytes(training.trained)
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 3e38]) {
    const request = stepOf(rolloutGroups(2, 2), weighted)
    request.groups[1]!.sequences[0]!.weights = Float32Array.of(value, 1)
    t.match(await training.train(request), { skipped: true }, `weight ${value}`)
  }
  t.equal(training.step, 0)
  t.ok((await bytes(training.trained)).equals(start))
  t.match(await training.train(stepOf(rolloutGroups(2, 2), weighted)), { skipped: false })
})

t.test('training lowers the loss from random weights', t =>
  scratch(async dir => {
    cpSync('fixtures/model/config.json', join(dir, 'config.json'))
    const model = await random(dir)
    const training = await trainer(model, { optimizer: { ...adam, weightDecay: 0 } })
    const request = { ...requestFor(200), lr: 3e-3 }
    const losses = []
    for (let i = 0; i < 12; i++) losses.push((await training.train(request)).loss)
    t.ok(Math.abs(losses[0]! - Math.log(2048)) < 0.3, `an untaught model knows nothing: ${losses[0]}`)
    t.ok(losses.at(-1)! < 0.6 * losses[0]!, `${losses[0]} to ${losses.at(-1)}`)
  }),
)

t.test('random weights depend on the seed alone, and are as stated', t =>
  scratch(async dir => {
    const config = JSON.parse(readFileSync(join(models, 'qwen2/config.json'), 'utf8'))
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ ...config, initializer_range: 0.05, torch_dtype: 'bfloat16' }))
    const made = async (seed: bigint, threads: number) => bytes(await (await random(dir, seed, threads)).weights())
    const [a, b, c] = await Promise.all([made(5n, 1), made(5n, 3), made(6n, 1)])
    t.ok(a.equals(b))
    t.notOk(a.equals(c))
    for (const { name, values } of await tensorsOf(await (await random(dir)).weights())) {
      if (/norm/.test(name))
        t.ok(
          values.every(x => x === 1),
          name,
        )
      else if (/bias/.test(name))
        t.ok(
          values.every(x => x === 0),
          name,
        )
      else {
        const moment = (p: number) => values.reduce((sum, x) => sum + (x / 0.05) ** p, 0) / values.length
        const noise = 1 / Math.sqrt(values.length)
        t.ok(
          Math.abs(moment(1)) < 4 * noise && Math.abs(moment(2) - 1) < 6 * noise && Math.abs(moment(4) - 3) < 40 * noise,
          `${name} is normal`,
        )
      }
    }
  }),
)

t.test('a model in training is for that alone', async t => {
  const model = await load()
  const sampler = model.sampler({ maxBatch: 2 })
  const ask = () =>
    sampler.generate({
      ids: Int32Array.of(4, 5, 6),
      adapter: null,
      sampling: plainSampling,
      stopIds: Int32Array.of(),
      maxTokens: 3,
      seed: 1n,
      rollout: 1n,
      session: 's',
    })
  await ask()
  const lora = model.trainer(await model.newAdapter(rank4, 1n), adam)
  const request = stepOf(rolloutGroups(1, 2), weighted)
  await lora.train(request)
  const weights = await model.weights()
  t.match(await rejection(model.weights()), { code: 'E_IN_TRAINING' })
  t.match(await rejection(ask()), { code: 'E_IN_TRAINING' })
  t.match(await rejection(lora.train(request)), { code: 'E_IN_TRAINING' })
  const training = model.trainer(weights, adam)
  t.match(await rejection(training.train(stepOf(rolloutGroups(1, 2), grpo))), { code: 'E_IN_TRAINING', message: /KL/ })
  t.match(await rejection(training.snapshot()), { code: 'E_ADAPTER' })
  weights.dispose()
  t.match(await rejection(Promise.resolve().then(() => model.trainer(weights, adam))), { code: 'E_DISPOSED' })
  await sampler.close()
})
