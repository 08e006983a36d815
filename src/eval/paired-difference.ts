import type { Difference, Score } from '../record/schema.js'
import { mean, quantile } from './averages.js'
import { groupBy } from './group-by.js'
import { random32 } from './random.js'

export type NamedScores = { name: string; scores: readonly Score[] }
export type Bootstrap = { resamples: number; level: number; seed: string }

/**
 * Mean difference in F0.5 of two policies over the instances that both have, with a paired bootstrap interval.
 *
 * Each instance counts once, with its mean over samples. `resamples` times as many instances are drawn with replacement, and the interval holds the middle
 * `level` of the means (percentile method; Efron and Tibshirani, 1993, chapter 13). The same seed gives the same interval. Undefined: no common instance.
 */
export function pairedDifference(from: NamedScores, to: NamedScores, { resamples, level, seed }: Bootstrap): Difference | undefined {
  const before = meanByInstance(from.scores)
  const after = meanByInstance(to.scores)
  // sorted, so that the order of the files does not decide the draws
  const common = [...before.keys()].filter(id => after.has(id)).sort()
  const differences = common.map(id => after.get(id)! - before.get(id)!)
  const n = differences.length
  if (n === 0) return undefined

  const next = random32(`paired bootstrap ${seed}`)
  const means = Array.from({ length: resamples }, () => {
    let sum = 0
    for (let draw = 0; draw < n; draw++) sum += differences[Math.floor((next() / 2 ** 32) * n)]!
    return sum / n
  })
  return {
    from: from.name,
    to: to.name,
    instances: n,
    f05: mean(differences)!,
    low: quantile(means, (1 - level) / 2)!,
    high: quantile(means, (1 + level) / 2)!,
    level,
    resamples,
    seed,
    better: differences.filter(d => d > 0).length,
    equal: differences.filter(d => d === 0).length,
    worse: differences.filter(d => d < 0).length,
  }
}

function meanByInstance(scores: readonly Score[]): Map<string, number> {
  const byInstance = groupBy(scores, score => score.instance_id)
  return new Map([...byInstance].map(([id, own]) => [id, mean(own.map(score => score.f05))!]))
}
