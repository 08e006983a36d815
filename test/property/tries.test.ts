import t from 'tap'
import type { TrainSequence } from '#cg/engine/types.js'
import { adam, grpo, join32, load, numbers, rank4, stepOf, tokens } from '../native/setup.js'

/**
 * A random forest as sequences: each begins with a random part of an earlier one, or anew, and goes on with tokens of its own; some repeat another whole. Loss is
 * on random spans.
 */
function forest(seed: number): TrainSequence[] {
  const next = numbers(seed)
  const below = (n: number) => Math.floor(next() * n)
  const sequences: TrainSequence[] = []
  for (let i = 0, count = 1 + below(7); i < count; i++) {
    const parent = sequences.length > 0 && next() < 0.8 ? sequences[below(sequences.length)]!.ids : new Int32Array()
    const shared = next() < 0.1 ? parent.length : below(parent.length + 1)
    const own = shared > 1 && next() < 0.1 ? 0 : 2 + below(next() < 0.2 ? 150 : 20)
    const ids = join32(parent.subarray(0, shared), tokens(seed * 31 + i, own))
    const spans: number[] = []
    for (let at = 1 + below(3); at < ids.length; ) {
      const end = Math.min(ids.length, at + 1 + below(12))
      spans.push(at, end)
      at = end + 1 + below(20)
    }
    const loss = spans.length / 2
    sequences.push({
      ids,
      spans: Int32Array.from(spans),
      advantages: Float32Array.from({ length: loss }, () => 2 * next() - 1),
      temperature: next() < 0.5 ? 1 : 0.7,
    })
  }
  return sequences
}

t.test('1,000 random tries give the log-probs of their sequences, bit for bit, and their gradient', async t => {
  const model = await load(undefined, { backend: 'cpu' })
  const adapter = await model.newAdapter(rank4, 2n)
  const trainer = model.trainer(adapter, adam)
  let shared = 0
  let worst = 0
  for (let seed = 0; seed < 1000; seed++) {
    const sequences = forest(seed)
    const trie = await model.score({ sequences, adapter })
    const flat = []
    for (const sequence of sequences) flat.push(...(await model.score({ sequences: [sequence], adapter })).logprobs)
    if (Buffer.compare(Buffer.from(trie.logprobs.buffer), Buffer.from(Float32Array.from(flat).buffer)) !== 0)
      t.fail(`seed ${seed}: log-probs differ`)
    if (seed % 10 > 0) continue // gradients are within 1e-5 only: fewer show as much
    const gradient = async (groups: TrainSequence[][]) => {
      const request = stepOf(
        groups.map((group, index) => ({ index, sequences: group })),
        { ...grpo, kl: 0 } as typeof grpo,
      )
      const { stats, tensors } = await trainer.gradient(request)
      shared += stats.tokens - stats.uniqueTokens
      return tensors.flatMap(({ values }) => [...values])
    }
    const [one, many] = [await gradient([sequences]), await gradient(sequences.map(sequence => [sequence]))]
    const norm = Math.hypot(...one)
    const difference = Math.hypot(...one.map((value, i) => value - many[i]!))
    worst = Math.max(worst, norm === 0 ? difference : difference / norm)
  }
  t.ok(shared > 1000, `${shared} tokens shared`)
  t.ok(worst < 1e-5, `largest difference of a gradient: ${worst}`)
  model.dispose()
})
