/**
 * contract-run.js BACKEND DTYPE THREADS: checks the numeric contract (native/core/numerics.md) in this process and prints digests of all bits, as JSON.
 *
 * Two-turn rollouts are sampled from an adapter, then every way of computing a token's log-prob is compared with the sampler's own: other batches (1, 2, 3, 5, 16
 * sequences at once), contexts that arrive in chunks, each rollout scored alone, all in one trie, in tries of other shapes and orders, and in training passes that are
 * split. Ends with status 1 and a line for every way that differs in a bit. CG_ISA names the instruction set.
 */
import { createHash } from 'node:crypto'
import { loadEngine } from '#cg/engine/load.js'
import type { Adapter, BackendName, Generation, LossOptions, Model, Precision, TrainSequence } from '#cg/engine/types.js'
import { adam, grpo, join32, numbers, plainSampling, rank4, rolloutGroups, stepOf, tiny, tokens } from './setup.js'

const [backend, dtype, threads] = process.argv.slice(2) as [BackendName, Precision, string]
const model: Model = await loadEngine().loadModel(tiny, { backend, dtype, threads: Number(threads) })
const count = 16
const own = 7
const faults: string[] = []

/** What PEFT starts with is zero in B: a step of training makes an adapter that does something. */
async function trainedAdapter(): Promise<Adapter> {
  const trainer = model.trainer(await model.newAdapter(rank4, 5n), adam)
  await trainer.train(stepOf(rolloutGroups(2, 3)))
  return trainer.snapshot()
}

const adapter = await trainedAdapter()

type Rollout = { context: Int32Array; temperature: number; ids: Int32Array; logprobs: Float32Array }

/** Prompts of several lengths around the pages of 64 positions; every fourth shares its prompt with the one before. */
const prompts = Array.from({ length: count }, (_, i) => (i % 4 === 3 ? tokens(i - 1, 40 + 11 * (i - 1)) : tokens(i, 40 + 11 * i)))

function temperatureOf(i: number): number {
  return i % 2 === 0 ? 1 : 0.7
}

/** A turn of every rollout, `atOnce` of them at a time; with `chunk`, a context arrives in pieces that are each sampled from once. */
async function turns(contexts: Int32Array[], atOnce: number, chunk = 0): Promise<Generation[]> {
  const sampler = model.sampler({ maxBatch: atOnce })
  const request = (i: number, ids: Int32Array, maxTokens: number) =>
    sampler.generate({
      ids,
      adapter,
      sampling: { ...plainSampling, temperature: temperatureOf(i) },
      stopIds: new Int32Array(),
      maxTokens,
      seed: 3n,
      rollout: BigInt(i),
      session: `${i}`,
    })
  const results = await Promise.all(
    contexts.map(async (ids, i) => {
      if (chunk > 0) for (let end = chunk + (i % 5); end < ids.length; end += chunk) await request(i, ids.subarray(0, end), 1)
      return request(i, ids, own)
    }),
  )
  await sampler.close()
  return results
}

const bits = (values: Float32Array | Int32Array) => Buffer.from(values.buffer, values.byteOffset, values.byteLength)
const digest = (list: (Float32Array | Int32Array)[]) => {
  const hash = createHash('sha256')
  for (const values of list) hash.update(bits(values))
  return hash.digest('hex')
}

function expectSame(what: string, got: (Float32Array | Int32Array)[], wanted: (Float32Array | Int32Array)[]): void {
  if (digest(got) !== digest(wanted)) faults.push(what)
}

const results = (list: Generation[]) => list.flatMap(({ ids, logprobs }) => [ids, logprobs])

// ---- sampling ----
const first = await turns(prompts, 16)
const contexts = first.map(({ ids }, i) => join32(prompts[i]!, ids, tokens(100 + i, 9)))
const second = await turns(contexts, 16)
for (const atOnce of [1, 2, 3, 5]) {
  expectSame(`first turns, ${atOnce} at once`, results(await turns(prompts, atOnce)), results(first))
  expectSame(`second turns, ${atOnce} at once`, results(await turns(contexts, atOnce)), results(second))
}
for (const chunk of [1 + 63, 17, 100])
  expectSame(`contexts in chunks of ${chunk}`, results(await turns(contexts, 4, chunk)), results(second))

// ---- scoring and training ----
const rollouts: Rollout[] = contexts.map((context, i) => ({ context, temperature: temperatureOf(i), ...second[i]! }))
const sequences = rollouts.map(({ context, temperature, ids }, i): TrainSequence => {
  const begin = prompts[i]!.length
  return {
    ids: join32(context, ids),
    spans: Int32Array.of(begin, begin + own, context.length, context.length + own),
    old: Float32Array.from([...first[i]!.logprobs, ...second[i]!.logprobs]),
    advantages: Float32Array.of(i % 3 ? 0.5 : -1, 0.25),
    temperature,
  }
})
const sampled = first.map(({ logprobs }, i) => Float32Array.from([...logprobs, ...second[i]!.logprobs]))
const scored = async (list: TrainSequence[]) => (await model.score({ sequences: list, adapter })).logprobs

const alone = []
for (const sequence of sequences) alone.push(await scored([sequence]))
expectSame('rollouts scored one by one', alone, sampled)
expectSame('rollouts scored in one trie', [await scored(sequences)], [Float32Array.from(sampled.flatMap(list => [...list]))])
const next = numbers(9)
for (let round = 0; round < 6; round++) {
  const order = sequences.map((_, i) => ({ i, key: next() })).sort((a, b) => a.key - b.key).map(({ i }) => i) // biome-ignore format: a shuffle
  const part = order.slice(0, 2 + round * 2)
  expectSame(
    `a trie of rollouts ${part}`,
    [await scored(part.map(i => sequences[i]!))],
    [Float32Array.from(part.flatMap(i => [...sampled[i]!]))],
  )
}

const request = (maxRowsPerPass: number, groups: number) => {
  const list = Array.from({ length: groups }, (_, index) => ({ index, sequences: sequences.filter((_, i) => i % groups === index) }))
  return { ...stepOf(list, { ...grpo, kl: 0 } as LossOptions), maxRowsPerPass }
}
const gradients: Float32Array[] = []
for (const groups of [1, 4])
  for (const rows of [10_000, 700]) {
    const trainer = model.trainer(adapter, adam)
    const { stats, tensors } = await trainer.gradient(request(rows, groups))
    if (stats.mismatch.max !== 0)
      faults.push(`${groups} groups, ${rows} rows a pass: the trainer's log-probs are up to ${stats.mismatch.max} off`)
    gradients.push(...tensors.map(({ values }) => values))
    trainer.dispose()
  }

for (const fault of faults) process.stderr.write(`${fault}\n`)
process.stdout.write(
  `${JSON.stringify({ kind: model.info.logprobKind, device: model.info.device, logprobs: digest(sampled), gradients: digest(gradients) })}\n`,
)
process.exitCode = faults.length === 0 ? 0 : 1
model.dispose()
