import { bm25Tokens } from './bm25-tokens.js'
import { type Okapi, okapi } from './okapi.js'

const pathWeight = 2
const skippedDirectories = new Set(['__pycache__', 'venv', '.venv', 'env', 'build', 'dist', '.eggs'])

export type Bm25 = {
  content: Okapi
  path: Okapi
  /** The `k` best files, best first; equal scores in the order of the files. Always min(k, files), zero scores and empty queries included. */
  rank(query: string, k?: number): { path: string; score: number }[]
}

/** Is the file in the baseline's corpus: Python, tests included, and in no directory of an environment or a build? */
export function inBm25Corpus(path: string): boolean {
  return (
    path.endsWith('.py') &&
    !path
      .split('/')
      .slice(0, -1)
      .some(directory => skippedDirectories.has(directory))
  )
}

/**
 * The BM25 baseline over the files of one tree (CodeGrep, Appendix E): content score + 2 · path score, each with its own index; the query is the issue text.
 *
 * `files` in the order that breaks ties. `rank` gives the paper's K = 2 files when not told otherwise.
 */
export async function bm25(files: AsyncIterable<{ path: string; text: string }> | Iterable<{ path: string; text: string }>): Promise<Bm25> {
  const paths: string[] = []
  const tokens: string[][] = []
  for await (const { path, text } of files) {
    paths.push(path)
    tokens.push(bm25Tokens(text))
  }
  const content = okapi(tokens)
  const path = okapi(paths.map(bm25Tokens))
  return {
    content,
    path,
    rank(query, k = 2) {
      const words = bm25Tokens(query)
      const byPath = path.scores(words)
      const scores = content.scores(words).map((score, n) => score + pathWeight * byPath[n]!)
      const order = paths.map((_, n) => n).sort((a, b) => scores[b]! - scores[a]! || a - b)
      return order.slice(0, k).map(n => ({ path: paths[n]!, score: scores[n]! }))
    },
  }
}
