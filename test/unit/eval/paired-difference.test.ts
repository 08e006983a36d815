import t from 'tap'
import { pairedDifference } from '#cg/eval/paired-difference.js'
import { random32, xoshiro128 } from '#cg/eval/random.js'
import { score, scores } from './example-score.js'

const options = { resamples: 2000, level: 0.95, seed: '0' }

t.test('a constant gain has an interval of no width', async t =>
  t.match(pairedDifference(named('a', 0.25, 0.5, 0), named('b', 0.5, 0.75, 0.25), options), {
    from: 'a',
    to: 'b',
    instances: 3,
    f05: 0.25,
    low: 0.25,
    high: 0.25,
    better: 3,
    equal: 0,
    worse: 0,
  }),
)

t.test('the interval holds the mean, and changing sides mirrors it', async t => {
  const [a, b] = [named('a', 0, 0.5, 1, 0.25, 0.75, 0), named('b', 0.5, 0.5, 0.5, 1, 1, 0)]
  const there = pairedDifference(a, b, options)!
  const back = pairedDifference(b, a, options)!
  t.ok(there.low < there.f05 && there.f05 < there.high)
  t.equal(back.f05, -there.f05)
  t.ok(Math.abs(back.low + there.high) < 1e-12 && Math.abs(back.high + there.low) < 1e-12)
  t.match(there, { better: 3, equal: 2, worse: 1 })
})

t.test('its width is that of the mean of n: about 2 · 1.96 · sd / √n', async t => {
  const n = 400
  const next = random32('gains')
  const gains = Array.from({ length: n }, () => next() / 2 ** 32)
  const found = pairedDifference(named('a', ...gains.map(() => 0)), named('b', ...gains), { ...options, resamples: 4000 })!
  const expected = (2 * 1.96 * Math.sqrt(1 / 12)) / Math.sqrt(n)
  t.ok(Math.abs((found.high - found.low) / expected - 1) < 0.1, `${found.high - found.low} is about ${expected}`)
})

t.test('each instance counts once, with the mean over its samples', async t => {
  const a = {
    name: 'a',
    scores: [score({ instance_id: 'x', f05: 0 }), score({ instance_id: 'x', f05: 1 }), score({ instance_id: 'y', f05: 0 })],
  }
  const b = { name: 'b', scores: [score({ instance_id: 'x', f05: 1 }), score({ instance_id: 'y', f05: 0 })] }
  t.match(pairedDifference(a, b, options), { instances: 2, f05: 0.25 })
})

t.test('only common instances; none is no difference', async t => {
  const a = { name: 'a', scores: [score({ instance_id: 'x', f05: 0 }), score({ instance_id: 'y', f05: 0 })] }
  t.match(pairedDifference(a, { name: 'b', scores: [score({ instance_id: 'y' }), score({ instance_id: 'z' })] }, options), {
    instances: 1,
    f05: 1,
  })
  t.equal(pairedDifference(a, { name: 'b', scores: [score({ instance_id: 'z' })] }, options), undefined)
})

t.test('the seed decides the draws, the order of the files does not', async t => {
  const [a, b] = [named('a', 0, 0.5, 1, 0.25), named('b', 0.5, 0.25, 1, 1)]
  t.same(pairedDifference(a, b, options), pairedDifference({ ...a, scores: a.scores.toReversed() }, b, options))
  const other = pairedDifference(a, b, { ...options, seed: '1', resamples: 101 })!
  t.not(other.low, pairedDifference(a, b, { ...options, resamples: 101 })!.low)
})

t.test('the generator gives the sequence of its reference implementation', async t => {
  const next = xoshiro128([1, 2, 3, 4])
  t.same(
    Array.from({ length: 8 }, () => next()),
    [11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849],
  )
})

t.test('the generator spreads evenly and does not repeat early', async t => {
  const next = random32('even')
  const bins = Array(16).fill(0)
  const seen = new Set<number>()
  for (let n = 0; n < 16000; n++) {
    const value = next()
    seen.add(value)
    bins[value >>> 28]++
  }
  t.ok(
    bins.every((count: number) => count > 880 && count < 1120),
    bins.join(' '),
  )
  t.ok(seen.size > 15990)
})

function named(name: string, ...f05: number[]) {
  return { name, scores: scores(name, ...f05) }
}
