import { parseCalls } from '../model/parse-calls.js'
import { callText, type ScriptedCall } from './call-text.js'
import { flawedAnswer, guess, observedPaths, type Seen, soundAnswer } from './lexical-answers.js'
import { type Clue, issueClues } from './lexical-clues.js'
import { type Draws, drawsOf } from './lexical-draws.js'
import { type Ranked, rankFiles } from './lexical-rank.js'
import { searchKey } from './lexical-search.js'
import { purpose, searchVariants } from './lexical-variants.js'
import { commonWords, pythonNames } from './lexical-words.js'
import type { TurnRequest } from './policy.js'

/**
 * A turn of the agent with noise: what it searches for, how many calls it makes, in which order, and whether it reads before it answers is drawn; and with
 * probability `noise` each decision is a flawed one: a generic or wrong search, a useless turn, giving up, a guess without a call, the first match, a caller
 * or a test as the answer, too many files. Draws depend on the seed, the rollout's id and the turn. Whatever it does is well-formed.
 */
export function noisyTurn(request: TurnRequest, noise: number): string {
  const { seed, rollout, turn, last, maxCalls, instance } = request
  const draw = drawsOf(`${seed} ${rollout} ${turn}`)
  const clues = issueClues(instance)
  const seen = observed(request)
  const searches = seen.map(one => purpose(one, clues))
  const ranked = rankFiles(
    searches,
    seen.map(({ observation }) => observation),
  )
  const conclude = () => (draw.chance(noise) ? flawedAnswer(draw, seen, ranked) : soundAnswer(draw, seen, ranked, clues))

  if (last) return conclude()
  if (draw.chance(noise)) {
    const flaw = draw.weighted(turn === 0 ? flawsAtFirst : flawsLater)
    if (flaw === 'giveUp') return draw.pick(surrenders)
    if (flaw === 'guess') return guess(draw, instance, clues)
    if (flaw === 'hasty') return flawedAnswer(draw, seen, ranked)
    return callText(flawedCalls(draw, flaw, instance, clues, seen))
  }

  const best = ranked[0]
  if (best?.strong || (best && turn > 0 && draw.chance(0.25))) {
    const more = draw.chance(0.36) ? (readAround(draw, best, seen) ?? follow(draw, seen)) : undefined
    return more ? callText([more]) : conclude()
  }
  const made = new Set(seen.map(({ call }) => searchKey(call)))
  const left = searchVariants(instance.problem_statement, clues, draw).filter(call => !made.has(searchKey(call)))
  if (left.length === 0) return conclude()
  const calls = left.slice(0, Math.min(maxCalls, Number(draw.weighted({ 1: 30, 2: 29, 3: 22, 4: 19 }))))
  return callText(draw.chance(0.4) ? draw.shuffled(calls) : calls)
}

type Flaw = 'generic' | 'wrong' | 'useless' | 'guess' | 'giveUp' | 'hasty'
const flawsAtFirst: Record<Flaw, number> = { generic: 34, wrong: 30, useless: 20, guess: 16, giveUp: 0, hasty: 0 }
const flawsLater: Record<Flaw, number> = { generic: 10, wrong: 8, useless: 26, guess: 0, giveUp: 16, hasty: 40 }

const surrenders = ['I could not find it.', 'I am not sure where this is.', 'The search did not help.', 'Nothing relevant found.']

/** Calls of earlier turns in order, each with its observation. */
function observed({ messages }: TurnRequest): Seen[] {
  const observations = messages.filter(m => m.role === 'tool').map(m => m.content)
  const calls = messages.filter(m => m.role === 'assistant').flatMap(m => parseCalls(m.content))
  return calls.flatMap((call, i) =>
    call.bad
      ? []
      : [{ call: { name: call.name, arguments: call.arguments as ScriptedCall['arguments'] }, observation: observations[i] ?? '' }],
  )
}

/** Some lines from just before the hit; undefined where that was read, or nobody knows where the hit is and the file was opened. */
function readAround(draw: Draws, { path, line }: Ranked, seen: readonly Seen[]): ScriptedCall | undefined {
  if (seen.some(({ call }) => call.name === 'read' && call.arguments.path === path)) return undefined
  if (line === undefined) return { name: 'read', arguments: { path } }
  const start = Math.max(1, line - draw.pick([0, 0, 2, 5]))
  return { name: 'read', arguments: { path, start, end: start + draw.pick([10, 15, 20]) } }
}

/** A name that the last read showed being called or defined, searched for: the fault may lie there, or with those who call it. */
function follow(draw: Draws, seen: readonly Seen[]): ScriptedCall | undefined {
  const read = seen.findLast(({ call }) => call.name === 'read')?.observation ?? ''
  const patterns = [...read.matchAll(/\b(def |class )?([A-Za-z_]\w{3,})\(/g)].map(([, defines, name]) =>
    defines ? name! : /^_?[A-Z]/.test(name!) ? `class ${name}` : `def ${name}`,
  )
  const fresh = patterns.filter(
    pattern => !pythonNames.has(pattern.split(' ').at(-1)!) && seen.every(({ call }) => call.arguments.pattern !== pattern),
  )
  return fresh.length === 0 ? undefined : { name: 'grep', arguments: { pattern: draw.pick(fresh) } }
}

/** Calls that do not help: a word that is everywhere, something else than what was asked for, a look at what is known. */
function flawedCalls(
  draw: Draws,
  flaw: 'generic' | 'wrong' | 'useless',
  instance: TurnRequest['instance'],
  clues: readonly Clue[],
  seen: readonly Seen[],
): ScriptedCall[] {
  const words = instance.problem_statement.toLowerCase().match(/\b[a-z]{4,}\b/g) ?? []
  const grep = (pattern: string): ScriptedCall => ({ name: 'grep', arguments: { pattern } })
  const project = instance.repo.split('/').at(-1)!
  switch (flaw) {
    case 'generic': {
      const plain = words.filter(word => !commonWords.has(word))
      return [
        draw.chance(0.7) && plain.length > 0
          ? grep(draw.pick(plain))
          : grep(draw.pick(['error', 'import', 'def ', 'class ', project.split('-')[0]!])),
      ]
    }
    case 'wrong': {
      const names = clues.flatMap(clue => (clue.kind === 'name' ? [clue.text] : []))
      const two = [draw.pick([...words, 'value']), draw.pick([...words, 'name'])].join('_')
      return [grep(draw.pick([...names.slice(1), two, two, instance.problem_statement.match(/\b\w+Error\b/)?.[0] ?? two]))]
    }
    case 'useless': {
      const again = seen.at(-1)?.call
      return [
        draw.pick<ScriptedCall>([
          { name: 'read', arguments: { path: 'README.md' } },
          { name: 'glob', arguments: { pattern: draw.pick(['**/*.py', 'tests/*.py', '*']) } },
          ...(again ? [again] : []),
          { name: 'read', arguments: { path: draw.pick(['pyproject.toml', ...observedPaths(seen)]), start: 1, end: 12 } },
        ]),
      ]
    }
  }
}
