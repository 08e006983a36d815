import type { Search } from './lexical-search.js'

/** A file and what speaks for it. `line`: of the strongest hit. `strong`: a definition, a message or a frame was seen in it. */
export type Ranked = { path: string; score: number; line: number | undefined; strong: boolean }

/**
 * Files by evidence, the best first; ties by path.
 *
 * A hit counts for its clue's weight, more where the line defines the name, and less the more files the same search hit: a rare name says more. Tests,
 * documentation and examples are named in issues and searched with the rest, but fixes rarely go there.
 */
export function rankFiles(searches: readonly Search[], observations: readonly string[]): Ranked[] {
  const files = new Map<string, Ranked & { best: number }>()
  const add = (path: string, score: number, line: number | undefined, strong: boolean) => {
    const worth = score * placeFactor(path)
    const file = files.get(path) ?? { path, score: 0, line: undefined, strong: false, best: 0 }
    file.score += worth
    if (worth > file.best) {
      file.best = worth
      file.line = line
    }
    if (strong && placeFactor(path) === 1) file.strong = true
    files.set(path, file)
  }

  searches.forEach((search, i) => {
    const { clue } = search
    const found = bestHits(search, observations[i] ?? '')
    const spread = found.reduce((sum, hit) => sum + placeFactor(hit.path), 0) * unseenFactor(observations[i] ?? '')
    for (const hit of found) {
      const rarity = 1 / Math.max(1, spread)
      const factor = hit.defines ? 1 : clue.kind === 'word' || clue.kind === 'module' ? 1 : 0.25
      add(hit.path, clue.weight * factor * rarity, hit.line, hit.defines && spread < 3)
    }
  })
  return [...files.values()].map(({ best, ...file }) => file).sort((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1))
}

type Hit = { path: string; line: number | undefined; defines: boolean }

/** One hit a file: the first that defines, else the first. */
function bestHits({ call, clue }: Search, observation: string): Hit[] {
  const hits = new Map<string, Hit>()
  const keep = (hit: Hit) => {
    const before = hits.get(hit.path)
    if (!before || (hit.defines && !before.defines)) hits.set(hit.path, hit)
  }
  const lines = observation.split('\n')
  if (call.name === 'read') {
    const head = /^\[(.+): lines \d+-\d+ of \d+\]$/.exec(lines[0] ?? '')
    if (head && clue.kind === 'frame') keep({ path: head[1]!, line: clue.line, defines: true })
  } else if (call.name === 'glob') {
    for (const path of lines) if (path && !path.startsWith('[')) keep({ path, line: undefined, defines: clue.kind === 'module' })
  } else
    for (const text of lines) {
      const match = /^([^:]+):(\d+):(.*)$/s.exec(text)
      if (match) keep({ path: match[1]!, line: Number(match[2]), defines: defines(search(call), match[3]!, clue) })
    }
  return [...hits.values()]
}

const search = (call: Search['call']) => String(call.arguments.pattern)

function defines(pattern: string, line: string, clue: Search['clue']): boolean {
  if (clue.kind === 'message') return /["']/.test(line) || line.includes(pattern)
  const name = clue.kind === 'frame' ? clue.name : clue.kind === 'word' ? '' : clue.text
  if (name === '') return false
  const exact = name.replace(/[^\w]/g, '.')
  return new RegExp(`^\\s*(?:async\\s+)?(?:def|class)\\s+${exact}\\b|^\\s*(?:self\\.)?${exact}\\s*(?::[^=]+)?=[^=]`).test(line)
}

/** A result that was cut shows `N of M`: the rest lies in files that are not seen. */
function unseenFactor(observation: string): number {
  const cut = /^\[(\d+) of (\d+) (?:matches|files) shown\]$/m.exec(observation)
  return cut && Number(cut[1]) > 0 ? Number(cut[2]) / Number(cut[1]) : 1
}

/** What a hit counts by its place in the tree. */
function placeFactor(path: string): number {
  if (/(^|\/)(tests?|testing)\//.test(path) || /(^|\/)(test_[^/]*|[^/]*_test|conftest)\.py$/.test(path)) return 0.1
  if (!path.endsWith('.py')) return 0.1
  if (/(^|\/)(docs?|examples?|scripts?|benchmarks?)\//.test(path) || /(^|\/)(setup|conf)\.py$/.test(path)) return 0.2
  return /(^|\/)__init__\.py$/.test(path) ? 0.6 : 1
}
