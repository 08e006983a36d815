export type AdvantageOptions = {
  /** What the centred reward is divided by: the group's standard deviation, that of the whole batch, or nothing (Dr. GRPO). */
  std: 'group' | 'batch' | 'none'
  /** What is subtracted: the group's mean, or the mean of the others (leave-one-out). */
  baseline: 'mean' | 'loo'
  eps: number
  /** 1: divide by n − 1 (the paper's stack); 0: by n. */
  ddof: 0 | 1
  /** For std 'batch': see `standardDeviation`. */
  batchStd?: number
}

export const defaultAdvantage: AdvantageOptions = { std: 'group', baseline: 'mean', eps: 1e-4, ddof: 1 }

/**
 * Group-relative advantages, A_i = (R_i − mean) / (std + eps) (GRPO; formulas 1.4).
 *
 * A group of one, or whose rewards are all equal (max = min, not by the std, which rounding can leave above 0), gives 0 for all. null is a rollout that could
 * not be scored: outside mean and std, advantage 0.
 */
export function groupAdvantages(rewards: readonly (number | null)[], options: AdvantageOptions = defaultAdvantage): number[] {
  const scored = rewards.filter(r => r !== null)
  if (scored.length < 2 || zeroVariance(rewards)) return rewards.map(() => 0)

  const n = scored.length
  const mean = sum(scored) / n
  const divisor =
    options.std === 'none' ? 1 : (options.std === 'batch' ? batchStd(options) : standardDeviation(scored, options.ddof)) + options.eps
  // R − mean of the others = (R − mean) · n / (n − 1)
  const factor = options.baseline === 'loo' ? n / (n - 1) : 1
  return rewards.map(r => (r === null ? 0 : ((r - mean) * factor) / divisor))
}

/** Nothing to learn from: fewer than two scored rollouts, or equal rewards. */
export function zeroVariance(rewards: readonly (number | null)[]): boolean {
  const scored = rewards.filter(r => r !== null)
  return scored.length < 2 || Math.max(...scored) === Math.min(...scored)
}

/** Standard deviation with n − ddof in the denominator; 0 for fewer than two values. */
export function standardDeviation(values: readonly number[], ddof: 0 | 1): number {
  if (values.length < 2) return 0
  const mean = sum(values) / values.length
  return Math.sqrt(sum(values.map(v => (v - mean) ** 2)) / (values.length - ddof))
}

function batchStd(options: AdvantageOptions): number {
  if (options.batchStd === undefined) throw new RangeError("std 'batch' needs batchStd")
  return options.batchStd
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0)
}
