import { fBeta, type SetScore } from './set-score.js'

/** Lines [start, end] of a file, inclusive, from 1. */
export type LineRange = { path: string; start: number; end: number }

/** `coverage`: |p∩g| / |g| ≥ ½, as CodeGrep's algorithm says; `jaccard`: |p∩g| / |p∪g| ≥ ½, as its Table 6 says. */
export type RangeMatch = 'coverage' | 'jaccard'

export type RangeScore = SetScore & { pairs: [predicted: LineRange, gold: LineRange][]; scored: number }

/**
 * Scores predicted line ranges against the gold ranges (CodeGrep, section 3.5; formulas 1.2).
 *
 * Greedy in prediction order: each prediction takes the first still unpaired gold range, in gold order, that it matches. Repeats of a prediction count once.
 * `minedOnly` are files that are in the target through mining alone: no gold range can exist there, so predictions in them are dropped.
 * Paths must be in the form that is compared: see `comparedPath`.
 */
export function rangeScore(
  predicted: Iterable<LineRange>,
  gold: readonly LineRange[],
  { beta = 0.5, match = 'coverage', minedOnly = new Set() }: { beta?: number; match?: RangeMatch; minedOnly?: ReadonlySet<string> } = {},
): RangeScore {
  const distinct = new Map<string, LineRange>()
  for (const p of predicted) if (!minedOnly.has(p.path)) distinct.set(`${p.start}-${p.end}:${p.path}`, p)

  const free = [...gold]
  const pairs: [LineRange, LineRange][] = []
  for (const p of distinct.values()) {
    const index = free.findIndex(g => matches(p, g, match))
    if (index >= 0) pairs.push([p, free.splice(index, 1)[0]!])
  }
  return { ...fBeta(pairs.length, distinct.size, gold.length, beta), pairs, scored: distinct.size }
}

function matches(p: LineRange, g: LineRange, rule: RangeMatch): boolean {
  if (p.path !== g.path) return false
  const common = Math.min(p.end, g.end) - Math.max(p.start, g.start) + 1
  if (common <= 0) return false
  const length = (r: LineRange) => r.end - r.start + 1
  return 2 * common >= (rule === 'coverage' ? length(g) : length(p) + length(g) - common)
}
