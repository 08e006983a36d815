import type { Instance } from '../record/schema.js'
import { answerText, type ScriptedCall } from './call-text.js'
import type { Clue } from './lexical-clues.js'
import type { Draws } from './lexical-draws.js'
import type { Ranked } from './lexical-rank.js'

/** A call of an earlier turn and what it gave. */
export type Seen = { call: ScriptedCall; observation: string }

/** Lines from a hit to the end of what it begins where that was read, else ten more. */
export function rangesOf(
  files: readonly Pick<Ranked, 'path' | 'line'>[],
  seen: readonly Seen[],
): { path: string; start: number; end: number }[] {
  return files.flatMap(({ path, line }) => (line === undefined ? [] : [{ path, start: line, end: endOf(path, line, seen) ?? line + 10 }]))
}

/** Last line of the definition that begins at `line`, as far as a read shows it: it ends before the next line that is indented no deeper. */
function endOf(path: string, line: number, seen: readonly Seen[]): number | undefined {
  for (const { call, observation } of seen) {
    if (call.name !== 'read' || !observation.startsWith(`[${path}: lines `)) continue
    const lines = observation
      .split('\n')
      .slice(1)
      .map(text => /^(\d+):( *)(.*)$/.exec(text))
      .filter(match => match !== null)
    const first = lines.findIndex(match => Number(match[1]) === line)
    if (first < 0) continue
    let end = line
    for (const match of lines.slice(first + 1)) {
      if (match[3] === '') continue
      if (match[2]!.length <= lines[first]![2]!.length) break
      end = Number(match[1])
    }
    return end
  }
  return undefined
}

/** Paths that observations showed, in order, each once. */
export function observedPaths(seen: readonly Seen[]): string[] {
  return hits(seen)
    .map(({ path }) => path)
    .filter((path, i, all) => all.indexOf(path) === i)
}

type Hit = { path: string; line: number | undefined }

function hits(seen: readonly Seen[]): Hit[] {
  return seen.flatMap(({ call, observation }) =>
    observation.split('\n').flatMap((text): Hit[] => {
      if (text.startsWith('[')) return []
      if (call.name === 'glob') return text === '' ? [] : [{ path: text, line: undefined }]
      const match = call.name === 'grep' ? /^([^:]+):(\d+):/.exec(text) : null
      return match ? [{ path: match[1]!, line: Number(match[2]) }] : []
    }),
  )
}

/**
 * One file, now and then the second best, or two where the second has nearly as much evidence; mostly with ranges. Where the evidence is a traceback, now and then a caller's file; where the
 * last search went on from a read, now and then what it found.
 */
export function soundAnswer(draw: Draws, seen: readonly Seen[], ranked: readonly Ranked[], clues: readonly Clue[]): string {
  const [best, next] = ranked
  if (!best) return answerText([], [])
  const say = (files: readonly Pick<Ranked, 'path' | 'line'>[]) =>
    answerText(
      files.map(file => file.path),
      draw.chance(0.12) ? [] : rangesOf(files, seen),
    )
  const callers = clues.flatMap(clue => (clue.kind === 'frame' && clue.depth > 0 && clue.path !== best.path ? [clue] : []))
  if (callers.length > 0 && draw.chance(0.3)) return say(draw.chance(0.35) ? [best, callers[0]!] : [draw.pick(callers.slice(0, 2))])
  const followed =
    seen.length > 1 && seen.at(-2)!.call.name === 'read'
      ? hits(seen.slice(-1)).filter(hit => hit.path !== best.path && hit.path.endsWith('.py'))
      : []
  if (followed.length > 0 && draw.chance(0.45))
    return say([...(draw.chance(0.25) ? [best] : []), draw.chance(0.7) ? followed[0]! : draw.pick(followed)])
  if (next?.strong && draw.chance(next.score > 0.3 * best.score ? 0.2 : 0)) return say([next])
  const both = next?.strong && best.strong && next.score > 0.5 * best.score && draw.chance(next.score > 0.8 * best.score ? 0.9 : 0.5)
  return say(both ? [best, next] : [best])
}

/** An answer that does not follow from the evidence: the first match, a file that uses or tests the right one, any match, too many, or none. */
export function flawedAnswer(draw: Draws, seen: readonly Seen[], ranked: readonly Ranked[]): string {
  const found = hits(seen)
  const paths = observedPaths(seen)
  if (paths.length === 0) return answerText([], [])
  const others = paths.filter(path => path !== ranked[0]?.path)
  const tests = others.filter(path => /(^|\/)tests?\//.test(path))
  const one = (path: string) => answer(draw, [path], found, seen)
  switch (draw.weighted({ first: 26, other: 34, any: 14, many: 22, none: 4 })) {
    case 'first':
      return one(paths[0]!)
    case 'other':
      return one(others.length === 0 ? paths[0]! : draw.pick(tests.length > 0 && draw.chance(0.4) ? tests : others))
    case 'any':
      return one(draw.pick(paths))
    case 'many':
      return answer(draw, draw.shuffled(paths).slice(0, draw.pick([3, 4, 5, 6])), found, seen)
    case 'none':
      return answerText([], [])
  }
}

function answer(draw: Draws, paths: readonly string[], found: readonly Hit[], seen: readonly Seen[]): string {
  const files = paths.map(path => ({ path, line: found.find(hit => hit.path === path && hit.line !== undefined)?.line }))
  return answerText(paths, draw.chance(0.4) ? [] : rangesOf(files.slice(0, 2), seen))
}

/** An answer without a look: a path from the issue, or one that the project might have. */
export function guess(draw: Draws, { repo, problem_statement }: Instance, clues: readonly Clue[]): string {
  const package_ = repo.split('/').at(-1)!.replaceAll('-', '_')
  const words = clues.flatMap(clue => (clue.kind === 'frame' ? [] : (clue.text.toLowerCase().match(/[a-z]{3,}/g) ?? []).slice(0, 2)))
  const named = clues.flatMap(clue =>
    clue.kind === 'frame' ? [clue.path] : clue.kind === 'module' && clue.text.includes('/') ? [`${clue.text}.py`] : [],
  )
  const word = draw.pick([...words.slice(0, 6), ...(problem_statement.toLowerCase().match(/\b[a-z]{5,}\b/g) ?? []).slice(0, 4), 'main'])
  const path =
    named.length > 0 && draw.chance(0.4)
      ? draw.pick(named)
      : draw.pick([`${package_}/${word}.py`, `src/${package_}/${word}.py`, `${package_}/core/${word}.py`, `${word}.py`])
  return answerText([path], [])
}
