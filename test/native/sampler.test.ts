import { spawnSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type { Adapter, GenerateRequest, Generation, Model, Sampler } from '#cg/engine/types.js'
import { adam, copyModel, join32, load, plainSampling, rank4, rejection, rolloutGroups, scratch, stepOf, tiny, tokens } from './setup.js'

function request(ids: Int32Array, rollout: number, more: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    ids,
    adapter: null,
    sampling: plainSampling,
    stopIds: new Int32Array(),
    maxTokens: 24,
    seed: 7n,
    rollout: BigInt(rollout),
    session: `s${rollout}`,
    ...more,
  }
}

/** Log-probs of what was generated, as the trainer scores them. */
async function scored(model: Model, context: Int32Array, g: Generation, adapter: Adapter | null, temperature = 1) {
  const ids = join32(context, g.ids)
  const sequences = [{ ids, spans: Int32Array.of(context.length, ids.length), temperature }]
  return (await model.score({ sequences, adapter })).logprobs
}

async function sampling<T>(model: Model, maxBatch: number, use: (sampler: Sampler) => Promise<T>): Promise<T> {
  const sampler = model.sampler({ maxBatch })
  try {
    return await use(sampler)
  } finally {
    await sampler.close()
  }
}

const prompt = tokens(3, 70)
const contexts = [prompt, join32(prompt, tokens(4, 9)), tokens(5, 1), join32(prompt.slice(0, 65), tokens(6, 130)), prompt]

t.test('log-probs are those of the trainer, bit for bit', async t => {
  const model = await load()
  const adapter = await model.loadAdapter('fixtures/golden/engine/lora/qwen3-tied/qv/adapter')
  for (const [name, a, temperature] of [
    ['base', null, 1],
    ['adapter', adapter, 1],
    ['adapter, T 0.7', adapter, 0.7],
    ['greedy', adapter, 0],
  ] as const)
    await sampling(model, 8, async sampler => {
      const params = { ...plainSampling, temperature, topP: 0.9, topK: 50, repetitionPenalty: 1.1 }
      const got = await Promise.all(contexts.map((ids, i) => sampler.generate(request(ids, i, { adapter: a, sampling: params }))))
      for (const [i, g] of got.entries())
        t.strictSame(g.logprobs, await scored(model, contexts[i]!, g, a, temperature || 1), `${name}, context ${i}`)
    })
})

t.test('results do not depend on batching, arrival or threads', async t => {
  const model = await load()
  const together = await sampling(model, 8, s => Promise.all(contexts.map((ids, i) => s.generate(request(ids, i)))))
  const backwards = await sampling(model, 3, s => Promise.all(contexts.map((ids, i) => s.generate(request(ids, i))).reverse()))
  t.strictSame(backwards.reverse(), together, 'three at a time')
  const single = await load(tiny, { threads: 1 })
  for (const [i, ids] of contexts.entries())
    t.strictSame(await sampling(single, 1, s => s.generate(request(ids, i))), together[i], `alone on one thread, context ${i}`)
  t.notSame(together[0], together[4], 'another rollout draws differently')
})

t.test('a shared prompt is computed once, and a session keeps its turns', async t => {
  const model = await load()
  await sampling(model, 8, async sampler => {
    const got = await Promise.all(Array.from({ length: 8 }, (_, i) => sampler.generate(request(prompt, i, { maxTokens: 5 }))))
    const { prefillTokens, sharedTokens, decodeTokens } = sampler.stats()
    // Whoever comes an iteration later computes the last token again, for a state to sample from.
    t.ok(prefillTokens >= 70 && prefillTokens < 78, `${prefillTokens} tokens computed`)
    t.equal(prefillTokens + sharedTokens, 8 * 70)
    t.equal(decodeTokens, 40)

    const next = join32(prompt, got[0]!.ids, tokens(9, 12))
    const second = await sampler.generate(request(next, 0))
    t.equal(sampler.stats().prefillTokens - prefillTokens, 13, 'the observation, and the last token of the turn before')
    t.strictSame(second, await sampling(model, 1, fresh => fresh.generate(request(next, 0))), 'the same as from nothing')
    t.strictSame(second.logprobs, await scored(model, next, second, null))

    for (let i = 0; i < 8; i++) sampler.release(`s${i}`)
    const before = sampler.stats().prefillTokens
    await sampler.generate(request(prompt, 0, { maxTokens: 1 }))
    t.equal(sampler.stats().prefillTokens - before, 70, 'nothing is left after release')
  })
})

t.test('base and two adapters in one batch', async t => {
  const model = await load()
  const a = await model.loadAdapter('fixtures/golden/engine/lora/qwen3-tied/qv/adapter')
  const b = await model.loadAdapter('fixtures/golden/engine/losses/end-to-end/adapter')
  await sampling(model, 8, async sampler => {
    const adapters = [a, null, b, null, a, b]
    const got = await Promise.all(adapters.map((adapter, i) => sampler.generate(request(prompt, i, { adapter }))))
    for (const [i, g] of got.entries()) t.strictSame(g.logprobs, await scored(model, prompt, g, adapters[i]!), `request ${i}`)
    const { prefillTokens } = sampler.stats()
    t.ok(prefillTokens >= 210 && prefillTokens < 216, 'one prompt per adapter')
  })
})

t.test('generation ends', async t => {
  const model = await load()
  await sampling(model, 4, async sampler => {
    const free = await sampler.generate(request(prompt, 1))
    t.match(free, { stop: 'length' })
    t.equal(free.ids.length, 24)
    const at = free.ids.findIndex((id, i) => i > 2 && free.ids.indexOf(id) === i)
    const stopped = await sampler.generate(request(prompt, 1, { stopIds: Int32Array.of(free.ids[at]!, 199) }))
    t.equal(stopped.stop, 'stop', 'with a stop id')
    t.strictSame(stopped.ids, free.ids.slice(0, at + 1), 'which is included')
  })
  await scratch(async dir => {
    copyModel(tiny, `${dir}/m`, config => Object.assign(config, { max_position_embeddings: 80 }))
    const small = await load(`${dir}/m`)
    const g = await sampling(small, 1, s => s.generate(request(prompt, 1)))
    t.match(g, { stop: 'length' }, 'with the context')
    t.equal(g.ids.length, 10)
  })
})

t.test('greedy takes the most likely id, and padding rows are never drawn', async t => {
  const model = await load('fixtures/golden/engine/models/qwen3-padded', { realVocab: 243 })
  await sampling(model, 2, async sampler => {
    const g = await sampler.generate(request(prompt, 1, { sampling: { ...plainSampling, temperature: 0 }, maxTokens: 8 }))
    for (let i = 0; i < 8; i++) {
      const ids = join32(prompt, g.ids.slice(0, i))
      const logits = (await model.lastLogits({ sequences: [{ ids, spans: new Int32Array(), temperature: 1 }], adapter: null })).subarray(
        0,
        243,
      )
      t.equal(g.ids[i], logits.indexOf(Math.max(...logits)))
    }
    const hot = await sampler.generate(request(prompt, 2, { sampling: { ...plainSampling, temperature: 50 }, maxTokens: 400 }))
    t.ok(hot.ids.every(id => id < 243))
  })
})

t.test('an abort ends one request and leaves the others alone', async t => {
  const model = await load()
  await sampling(model, 4, async sampler => {
    const stop = new AbortController()
    const doomed = sampler.generate(request(prompt, 1, { maxTokens: 30000 }), stop.signal)
    const waiting = Promise.all([2, 3, 4].map(i => sampler.generate(request(prompt, i, { maxTokens: 200 }))))
    setTimeout(() => stop.abort(), 30)
    t.match(await rejection(doomed), { code: 'E_CANCELLED' })
    t.equal((await waiting).length, 3)
    t.match(await rejection(sampler.generate(request(prompt, 5), AbortSignal.abort())), { code: 'E_CANCELLED' })
    t.equal((await sampler.generate(request(prompt, 1))).ids.length, 24, 'its session can go on')
  })
})

t.test('close rejects what has not ended', async t => {
  const model = await load()
  const sampler = model.sampler({ maxBatch: 1 })
  const running = [1, 2].map(i => rejection(sampler.generate(request(prompt, i, { maxTokens: 30000 }))))
  await sampler.close()
  for (const error of await Promise.all(running)) t.match(error, { code: 'E_CANCELLED', message: /closed/ })
})

t.test('an adapter that is trained meanwhile is refused, its snapshot is not', async t => {
  const model = await load()
  const trainer = model.trainer(await model.newAdapter(rank4, 1n), adam)
  const snapshot = await trainer.snapshot()
  await sampling(model, 4, async sampler => {
    const moving = rejection(sampler.generate(request(prompt, 1, { adapter: trainer.trained, maxTokens: 30000 })))
    const still = sampler.generate(request(prompt, 2, { adapter: snapshot, maxTokens: 100 }))
    await trainer.train(stepOf(rolloutGroups(1, 2)))
    t.match(await moving, { code: 'E_ADAPTER', message: /snapshot/ })
    const g = await still
    t.strictSame(g.logprobs, await scored(model, prompt, g, snapshot))
    const after = await sampler.generate(request(prompt, 3, { adapter: trainer.trained }))
    t.strictSame(after.logprobs, await scored(model, prompt, after, trainer.trained), 'nothing of the old version is left in its cache')
  })
})

t.test('a process ends with a sampler open, and in the middle of a request', async t => {
  const script = `
    import { loadEngine } from '${pathToFileURL('dist/engine/load.js')}'
    const model = await loadEngine().loadModel('${tiny}', { backend: 'reference', threads: 2 })
    const sampling = ${JSON.stringify(plainSampling)}
    const running = model.sampler({ maxBatch: 2 }).generate({
      ids: Int32Array.of(1, 2), adapter: null, sampling, stopIds: new Int32Array(), maxTokens: process.argv[1] === 'exit' ? 30000 : 5, seed: 1n, rollout: 1n, session: 's' })
    if (process.argv[1] === 'exit') setTimeout(() => process.exit(7), 30)
    else console.log((await running).ids.length)`
  const run = (how: string) => spawnSync(process.execPath, ['--input-type=module', '-e', script, how], { encoding: 'utf8' })
  t.match(run('end'), { status: 0, signal: null, stdout: '5\n' })
  t.match(run('exit'), { status: 7, signal: null })
})
