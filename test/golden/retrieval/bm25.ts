import { bm25 } from '#cg/index/bm25.js'
import { bm25Tokens } from '#cg/index/bm25-tokens.js'
import { okapi } from '#cg/index/okapi.js'
import type { GoldenKind } from '../kind.js'
import { goldenFile, goldenNames } from './files.js'
import { worst } from './worst.js'

const bound = { value: 1e-12, unit: 'relative, absolute below 1' }

type Query = {
  text: string
  tokens: string[]
  content: number[]
  path: number[]
  path_split: number[]
  combined: number[]
  combined_split: number[]
  rank: number[]
  rank_content: number[]
  rank_split: number[]
  top2: string[]
}
type Corpus = {
  name: string
  docs: { path: string; text: string; length: number; path_tokens: string[]; path_tokens_split: string[] }[]
  avgdl: number
  average_idf: number
  idf: Record<string, number>
  queries: Query[]
}

const corpora: GoldenKind<Corpus> = {
  name: 'bm25',
  bound,
  find: dir =>
    goldenNames(dir, 'bm25')
      .map(name => goldenFile<Corpus>(dir, 'bm25', name)!)
      .filter(file => file.docs !== undefined),
  async run(c) {
    const seen = worst(bound.value)
    const index = await bm25(c.docs)
    const split = okapi(c.docs.map(doc => splitTokens(doc.path)))
    for (const doc of c.docs) {
      seen.same(`${doc.path} length`, bm25Tokens(doc.text).length, doc.length)
      seen.same(`${doc.path} path tokens`, bm25Tokens(doc.path), doc.path_tokens)
      seen.same(`${doc.path} split path tokens`, splitTokens(doc.path), doc.path_tokens_split)
    }
    seen.near('mean length', index.content.averageLength, c.avgdl, 'relative')
    seen.near('mean idf', index.content.averageIdf, c.average_idf, 'relative')
    seen.same('vocabulary', [...index.content.idf.keys()].sort(), Object.keys(c.idf).sort())
    for (const [token, value] of Object.entries(c.idf)) seen.near(`idf of ${token}`, index.content.idf.get(token)!, value, 'relative')

    for (const query of c.queries) {
      const what = JSON.stringify(query.text.slice(0, 40))
      const words = bm25Tokens(query.text)
      seen.same(`${what} tokens`, words, query.tokens)
      const content = index.content.scores(words)
      const path = index.path.scores(words)
      const pathSplit = split.scores(words)
      const vector = (name: string, actual: Float64Array, expected: number[]) =>
        expected.forEach((value, n) => {
          seen.near(`${what} ${name} ${n}`, actual[n]!, value, 'relative')
        })
      vector('content', content, query.content)
      vector('path', path, query.path)
      vector('path split', pathSplit, query.path_split)
      const combinedSplit = content.map((score, n) => score + 2 * pathSplit[n]!)
      vector('combined split', combinedSplit, query.combined_split)
      seen.same(`${what} rank of content`, ranked(content), query.rank_content)
      seen.same(`${what} rank of split`, ranked(combinedSplit), query.rank_split)

      const all = index.rank(query.text, c.docs.length)
      seen.same(
        `${what} rank`,
        all.map(found => found.path),
        query.rank.map(n => c.docs[n]!.path),
      )
      all.forEach((found, place) => {
        seen.near(`${what} combined ${found.path}`, found.score, query.combined[query.rank[place]!]!, 'relative')
      })
      seen.same(
        `${what} top 2`,
        index.rank(query.text).map(found => found.path),
        query.top2,
      )
    }
    return seen.result()
  },
}

type TokenCase = { name: string; text: string; tokens: string[] }

const tokens: GoldenKind<TokenCase> = {
  name: 'bm25/tokenizer',
  find: dir =>
    goldenFile<{ cases: Omit<TokenCase, 'name'>[] }>(dir, 'bm25', 'tokenizer.json')?.cases.map(c => ({
      name: ascii(c.text),
      ...c,
    })) ?? [],
  run(c) {
    const seen = worst(0)
    seen.same('tokens', bm25Tokens(c.text), c.tokens)
    return seen.result()
  },
}

type PathCase = { name: string; path: string; whole: string[]; split: string[] }

const paths: GoldenKind<PathCase> = {
  name: 'bm25/paths',
  find: dir =>
    goldenFile<{ path_cases: Omit<PathCase, 'name'>[] }>(dir, 'bm25', 'tokenizer.json')?.path_cases.map(c => ({
      name: ascii(c.path),
      ...c,
    })) ?? [],
  run(c) {
    const seen = worst(0)
    seen.same('whole', bm25Tokens(c.path), c.whole)
    seen.same('split', splitTokens(c.path), c.split)
    return seen.result()
  },
}

export const kinds: GoldenKind[] = [corpora, tokens, paths]

/** A name that any terminal and test protocol can show. */
function ascii(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The other reading of "file-path tokens": separators separate. The product does not use it. */
function splitTokens(path: string): string[] {
  return bm25Tokens(path.replace(/[/.]/g, ' '))
}

function ranked(scores: Float64Array): number[] {
  return [...scores.keys()].sort((a, b) => scores[b]! - scores[a]! || a - b)
}
