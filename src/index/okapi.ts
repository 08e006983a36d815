const k1 = 1.5
const b = 0.75
const epsilon = 0.25

/** An index over token lists. `scores` gives one score a document, in the order in which they were added. */
export type Okapi = {
  averageLength: number
  /** Of each token, after negative values were replaced. */
  idf: ReadonlyMap<string, number>
  averageIdf: number
  scores(query: readonly string[]): Float64Array
}

/**
 * Okapi BM25 as rank_bm25 0.2.2 computes it, whose defaults CodeGrep's Appendix E names: k1 1.5, b 0.75, ε 0.25.
 *
 * idf(t) = ln(N − n + ½) − ln(n + ½); a negative one becomes ε times the mean idf, which counts the negative ones.
 * score(d) = Σ over the query's tokens, repeats counted, of idf · tf · (k1 + 1) / (tf + k1 · (1 − b + b · |d| / mean length)), added in query order, so that
 * documents that are equal to a query have equal bits. Without any token every score is 0 (the library divides by zero there).
 */
export function okapi(documents: Iterable<readonly string[]>): Okapi {
  const lengths: number[] = []
  /** token → document, count, document, count … */
  const postings = new Map<string, number[]>()
  let total = 0
  for (const tokens of documents) {
    const document = lengths.push(tokens.length) - 1
    total += tokens.length
    for (const token of tokens) {
      const posting = postings.get(token)
      if (posting === undefined) postings.set(token, [document, 1])
      else if (posting[posting.length - 2] === document) posting[posting.length - 1]!++
      else posting.push(document, 1)
    }
  }

  const n = lengths.length
  const averageLength = n === 0 ? 0 : total / n
  const idf = new Map<string, number>()
  let sum = 0
  for (const [token, posting] of postings) {
    const holding = posting.length / 2
    const value = Math.log(n - holding + 0.5) - Math.log(holding + 0.5)
    idf.set(token, value)
    sum += value
  }
  const averageIdf = idf.size === 0 ? 0 : sum / idf.size
  for (const [token, value] of idf) if (value < 0) idf.set(token, epsilon * averageIdf)

  return {
    averageLength,
    idf,
    averageIdf,
    scores(query) {
      const scores = new Float64Array(n)
      for (const token of query) {
        const posting = postings.get(token)
        if (posting === undefined) continue
        const weight = idf.get(token)!
        for (let at = 0; at < posting.length; at += 2) {
          const document = posting[at]!
          const tf = posting[at + 1]!
          scores[document]! += weight * ((tf * (k1 + 1)) / (tf + k1 * (1 - b + (b * lengths[document]!) / averageLength)))
        }
      }
      return scores
    },
  }
}
