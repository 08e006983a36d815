/** Pieces of a sequence that carry loss: pairs [begin, end) and a weight for each. */
export type Learnt = { spans: number[]; weights: number[] }

/**
 * Makes every token of a sequence carry loss: those outside the spans (prompt, observations) count `weight` times.
 *
 * A rollout's loss is a mean over its loss tokens, of which there are several times as many now. Weights are scaled so that it is the weighted mean,
 * Σ w logp / Σ w: a token of the context counts `weight` times as much as a generated one, and the sum of both as much as a rollout did before.
 */
export function withContext({ spans, weights }: Learnt, length: number, weight: number): Learnt {
  const whole: Learnt = { spans: [], weights: [] }
  const add = (begin: number, end: number, value: number) => {
    if (begin === end) return
    whole.spans.push(begin, end)
    whole.weights.push(value)
  }
  let at = 1 // the first token is predicted from nothing
  let generated = 0
  for (const [i, value] of weights.entries()) {
    const [begin, end] = [spans[2 * i]!, spans[2 * i + 1]!]
    add(at, begin, weight)
    add(begin, end, value)
    generated += end - begin
    at = end
  }
  add(at, length, weight)
  const tokens = length - 1
  const scale = tokens / (generated + weight * (tokens - generated))
  return { spans: whole.spans, weights: whole.weights.map(value => value * scale) }
}
