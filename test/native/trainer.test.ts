import { join } from 'node:path'
import t from 'tap'
import type { Model, StepRequest, TrainGroup } from '#cg/engine/types.js'
import { euclid } from '../golden/measure.js'
import { adam, adapterBytes, grpo, load, rank4, rejection, rolloutGroups, scratch, stepOf, tiny } from './setup.js'

/** Adapter bytes and statistics after some steps from the same start. */
async function run(model: Model, requests: StepRequest[]) {
  const trainer = model.trainer(await model.newAdapter(rank4, 11n), adam)
  const stats = []
  for (const request of requests) stats.push(await trainer.train(request))
  return { stats, bytes: await adapterBytes(trainer.trained), trainer }
}

const steps = Array.from({ length: 3 }, (_, k) => stepOf(rolloutGroups(3, 4, 1000 * k)))

async function gradient(model: Model, request: StepRequest) {
  const adapter = await model.loadAdapter('fixtures/golden/engine/losses/end-to-end/adapter')
  const { stats, tensors } = await model.trainer(adapter, adam).gradient(request)
  return { stats, flat: Float64Array.from(tensors.flatMap(g => [...g.values])) }
}

function difference(a: Float64Array, b: Float64Array): number {
  return euclid(a.map((x, i) => x - b[i]!)) / euclid(b)
}

t.test('1, 2 and 4 threads give the same bits', async t => {
  const results = []
  for (const threads of [1, 2, 4]) results.push(await run(await load(tiny, { threads }), steps))
  for (const { stats, bytes } of results) {
    t.strictSame(stats, results[0]!.stats)
    t.ok(bytes.equals(results[0]!.bytes))
  }
  t.not(results[0]!.stats[0]!.gradNorm, 0)
})

t.test('3 steps, save, load, 3 steps are 6 steps, bit for bit', t =>
  scratch(async dir => {
    const model = await load()
    const all = [...steps, ...steps]
    const whole = await run(model, all)
    const first = await run(model, all.slice(0, 3))
    const state = join(dir, 'state.safetensors')
    await first.trainer.saveState(state)
    await first.trainer.trained.save(dir)

    const again = await load()
    const trainer = again.trainer(await again.loadAdapter(dir), adam)
    await trainer.loadState(state)
    t.equal(trainer.step, 3)
    const stats = []
    for (const request of all.slice(3)) stats.push(await trainer.train(request))
    t.strictSame(stats, whole.stats.slice(3))
    t.ok((await adapterBytes(trainer.trained)).equals(whole.bytes))
  }),
)

t.test('the order in which groups are listed changes nothing', async t => {
  const model = await load()
  const groups = rolloutGroups(5, 3)
  const a = await run(model, [stepOf(groups)])
  const b = await run(model, [stepOf([groups[3]!, groups[0]!, groups[4]!, groups[2]!, groups[1]!])])
  t.strictSame(a.stats, b.stats)
  t.ok(a.bytes.equals(b.bytes))
})

t.test('one trie, passes after whole rollouts, sequences alone: equal log-probs, gradients within 1e-5', async t => {
  const model = await load()
  const [group] = rolloutGroups(1, 5)
  const request = stepOf([group!])
  const whole = await gradient(model, request)
  t.ok(whole.stats.uniqueTokens < 0.6 * whole.stats.tokens, 'the trie is real')
  const apart: TrainGroup[] = group!.sequences.map((sequence, index) => ({ index, sequences: [sequence] }))
  for (const [name, other] of [
    ['passes of 60 rows', { ...request, maxRowsPerPass: 60 }],
    ['passes of one rollout', { ...request, maxRowsPerPass: 1 }],
    ['a group each', { ...request, groups: apart }],
  ] as const) {
    const got = await gradient(model, other)
    t.ok(got.stats.uniqueTokens > whole.stats.uniqueTokens, `${name}: less is shared`)
    t.ok(difference(got.flat, whole.flat) < 1e-5, name)
    t.ok(Math.abs(got.stats.loss - whole.stats.loss) < 1e-15, `${name}: the loss's terms have the same bits`)
  }
  const scores = await Promise.all(
    [group!.sequences, ...group!.sequences.map(s => [s])].map(sequences => model.score({ sequences, adapter: null, entropy: true })),
  )
  t.strictSame(scores[0]!.logprobs, Float32Array.from(scores.slice(1).flatMap(s => [...s.logprobs])))
  t.strictSame(scores[0]!.entropy, Float32Array.from(scores.slice(1).flatMap(s => [...s.entropy!])))
})

t.test('log-probs that came along show no mismatch, others do', async t => {
  const model = await load()
  const adapter = await model.newAdapter(rank4, 11n)
  const trainer = model.trainer(adapter, adam)
  const groups = rolloutGroups(2, 3)
  for (const group of groups) for (const s of group.sequences) s.old = (await model.score({ sequences: [s], adapter })).logprobs
  const first = await trainer.train(stepOf(groups))
  t.strictSame(first.mismatch, { kl: 0, multProbError: 1, max: 0 })
  t.equal(first.clipFraction, 0)
  t.equal(first.kl, 0, 'B is zero: the adapter is the base model still')
  const second = await trainer.train(stepOf(groups))
  t.ok(second.mismatch.max > 0 && second.mismatch.multProbError > 1 && second.mismatch.kl > 0)
  t.ok(second.kl > 0)
})

t.test('reference log-probs that come along save the reference pass and change nothing', async t => {
  const model = await load()
  const groups = rolloutGroups(2, 3)
  const computed = await gradient(model, stepOf(groups))
  for (const group of groups) for (const s of group.sequences) s.ref = (await model.score({ sequences: [s], adapter: null })).logprobs
  t.strictSame(await gradient(model, stepOf(groups)), computed)
  const start = await model.loadAdapter('fixtures/golden/engine/losses/end-to-end/adapter')
  const toStart = await gradient(model, { ...stepOf(rolloutGroups(2, 3)), klAdapter: start })
  t.equal(toStart.stats.kl, 0, 'against the adapter itself')
})

t.test('groups without loss and without advantage', async t => {
  const model = await load()
  const groups = rolloutGroups(3, 3)
  const before = await gradient(model, stepOf(groups))
  const withFaults: TrainGroup[] = [
    ...groups,
    { index: 3, sequences: [{ ids: Int32Array.of(4, 5), spans: new Int32Array(), temperature: 1 }] },
    { index: 7, sequences: [] },
  ]
  t.strictSame(await gradient(model, { ...stepOf(groups), groups: withFaults }), before, 'rollouts without loss tokens add nothing')

  const flat = groups.map(g => ({ ...g, sequences: g.sequences.map(s => ({ ...s, advantages: Float32Array.of(0, 0) })) }))
  const trainer = model.trainer(await model.newAdapter(rank4, 11n), { ...adam, weightDecay: 0 })
  const start = await adapterBytes(trainer.trained)
  const stats = await trainer.train(stepOf(flat, { ...grpo, kl: 0 } as typeof grpo))
  t.match(stats, { loss: 0, gradNorm: 0, skipped: false })
  t.equal(trainer.step, 1, 'a step in which nothing has an advantage is one')
  t.ok((await adapterBytes(trainer.trained)).equals(start))
})

t.test('NaN and infinity skip the step', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 11n), adam)
  const start = await adapterBytes(trainer.trained)
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 3e38]) {
    const request = stepOf(rolloutGroups(2, 2))
    request.groups[1]!.sequences[0]!.advantages = Float32Array.of(value, 1)
    t.match(await trainer.train(request), { skipped: true }, `advantage ${value}`)
  }
  t.equal(trainer.step, 0)
  t.ok((await adapterBytes(trainer.trained)).equals(start))
  t.match(await trainer.train(stepOf(rolloutGroups(2, 2))), { skipped: false })
})

t.test('evaluation changes nothing', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 11n), adam)
  const request = stepOf(rolloutGroups(2, 2))
  const start = await adapterBytes(trainer.trained)
  const seen = await trainer.evaluate(request)
  t.ok((await adapterBytes(trainer.trained)).equals(start))
  t.equal(seen.loss, (await trainer.train(request)).loss)
  t.not((await trainer.evaluate(request)).loss, seen.loss)
})

t.test('an abort between passes leaves the adapter as it was', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 11n), adam)
  const start = await adapterBytes(trainer.trained)
  const stop = new AbortController()
  const doomed = rejection(trainer.train({ ...stepOf(rolloutGroups(40, 4)), maxRowsPerPass: 1 }, stop.signal))
  setTimeout(() => stop.abort(), 20)
  t.match(await doomed, { code: 'E_CANCELLED' })
  t.equal(trainer.step, 0)
  t.ok((await adapterBytes(trainer.trained)).equals(start))
})

t.test('a new adapter begins as PEFT begins one, and depends on its seed alone', async t => {
  const model = await load()
  const [a, b, c] = await Promise.all([5n, 5n, 6n].map(seed => model.newAdapter(rank4, seed).then(adapterBytes)))
  t.ok(a!.equals(b!))
  t.notOk(a!.equals(c!))
  const { tensors } = await model.trainer(await model.newAdapter(rank4, 5n), adam).gradient(stepOf(rolloutGroups(1, 2)))
  for (const { name, values } of tensors)
    if (name.includes('lora_A'))
      t.ok(
        values.every(x => x === 0),
        `${name}: B is zero`,
      )
})
