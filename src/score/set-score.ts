/** Precision, recall and F-beta. All in [0, 1]. */
export type SetScore = { precision: number; recall: number; f: number }

/**
 * Scores a predicted set against the gold set (CodeGrep, section 3.5, equation 3; formulas 1.1).
 *
 * Both empty is a perfect answer (F 1, though nothing was right: P and R are 0); exactly one empty, or no overlap, scores 0. Duplicates count once.
 * Paths must be in the form that is compared: see `comparedPath`.
 * Paths must be normalised already: see `normalisePath`.
 */
export function setScore(predicted: Iterable<string>, gold: Iterable<string>, beta = 0.5): SetScore {
  const p = new Set(predicted)
  const g = new Set(gold)
  let hits = 0
  for (const path of p) if (g.has(path)) hits++
  return fBeta(hits, p.size, g.size, beta)
}

/** P = hits / predicted, R = hits / gold, F_β = (1 + β²) P R / (β² P + R), with the empty cases of `setScore`. */
export function fBeta(hits: number, predicted: number, gold: number, beta: number): SetScore {
  if (predicted === 0 && gold === 0) return { precision: 0, recall: 0, f: 1 }
  if (hits === 0) return { precision: 0, recall: 0, f: 0 }
  const precision = hits / predicted
  const recall = hits / gold
  const b2 = beta * beta
  return { precision, recall, f: ((1 + b2) * precision * recall) / (b2 * precision + recall) }
}
