import type { StepDenominators, TrainGroup } from '../engine/types.js'

/**
 * What a step's sums are divided by, whatever its split (formulas 3; stream contract, "Groups and barriers").
 *
 * grpo, gspo and dr_grpo divide by the rollouts that were asked for: dropped, zero-variance and faulty ones stay in. bnpo, dapo and cispo divide by the loss
 * tokens that arrived. Both are at least 1: a step without any loss token is 0, not 0 / 0.
 *
 * @param asked rollouts of the step as announced
 */
export function denominators(asked: number, groups: readonly TrainGroup[]): StepDenominators {
  let tokens = 0
  for (const group of groups) for (const { spans } of group.sequences) tokens += spanTokens(spans)
  return { rollouts: Math.max(1, asked), tokens: Math.max(1, tokens) }
}

/** Tokens inside spans, given as pairs [begin, end). */
export function spanTokens(spans: Int32Array): number {
  let tokens = 0
  for (let i = 0; i < spans.length; i += 2) tokens += spans[i + 1]! - spans[i]!
  return tokens
}
