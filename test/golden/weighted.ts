import type { StepRequest, TrainSequence } from '#cg/engine/types.js'

/**
 * A step whose loss is Σ coef · logp: one span per token, and weights that undo the division by the sequence's loss tokens.
 *
 * coef[j] belongs to ids[j + 1]. The engine's weights are float32, so a coefficient is off by at most 6e-8 of itself.
 */
export function weightedRequest(
  sequences: { ids: Int32Array; coef: Float64Array }[],
  temperature: number,
): Omit<StepRequest, 'lr' | 'clip'> {
  return {
    groups: [{ index: 0, sequences: sequences.map(s => weightedSequence(s.ids, s.coef, temperature)) }],
    loss: { kind: 'weighted' },
    denominators: { rollouts: 1, tokens: 1 },
    maxRowsPerPass: 1 << 20,
  }
}

function weightedSequence(ids: Int32Array, coef: Float64Array, temperature: number): TrainSequence {
  const spans = new Int32Array(2 * coef.length)
  for (let j = 0; j < coef.length; j++) spans.set([j + 1, j + 2], 2 * j)
  return { ids, spans, weights: Float32Array.from(coef, c => -c * coef.length), temperature }
}
