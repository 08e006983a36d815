import { parseCalls } from '../model/parse-calls.js'
import { answerText, callText } from './call-text.js'
import { issueClues } from './lexical-clues.js'
import { type Ranked, rankFiles } from './lexical-rank.js'
import { firstSearches, type Search, searchKey, secondSearches } from './lexical-search.js'
import type { Message, Policy, TurnRequest } from './policy.js'

/** Calls a turn (protocol: a turn). */
const maxCalls = 8

/**
 * A scripted agent: takes names, paths, messages and modules from the issue, searches for all of them in one turn, goes on with the words of the issue when
 * that found nothing to rely on, and answers with the one or two files that have most evidence.
 *
 * It sees what a model sees, writes what a model could write and has no chance in it: a baseline, and a teacher for supervised fine-tuning.
 */
export function lexicalPolicy(): Policy {
  return {
    identity: { kind: 'lexical', name: 'lexical', revision: 2 },
    tokens: false,
    scripted: true,
    submit: async request => ({ text: nextTurn(request), stop: 'stop' }),
    release: () => {},
    close: async () => {},
  }
}

function nextTurn({ instance, messages, last }: Pick<TurnRequest, 'instance' | 'messages' | 'last'>): string {
  const clues = issueClues(instance)
  const observations = messages.filter(m => m.role === 'tool').map(m => m.content)
  const turns = messages.filter(m => m.role === 'assistant')
  const first = firstSearches(clues, maxCalls)
  if (turns.length === 0) return first.length > 0 && !last ? callText(first.map(s => s.call)) : answerText([], [])

  const second = secondSearches(clues, new Set(first.map(s => searchKey(s.call))), maxCalls)
  const made = searchesMade(turns, first, second)
  const ranked = rankFiles(made, observations)
  const unsure = ranked[0] === undefined || !ranked[0].strong
  if (turns.length === 1 && unsure && second.length > 0 && !last) return callText(second.map(s => s.call))
  return answer(ranked)
}

/** The searches behind the calls that were made, in order, so that observations can be read against their clues. */
function searchesMade(turns: readonly Message[], first: Search[], second: Search[]): Search[] {
  const known = new Map([...first, ...second].map(s => [searchKey(s.call), s]))
  return turns
    .flatMap(turn => parseCalls(turn.content).map(call => (call.bad ? undefined : known.get(searchKey(call)))))
    .filter(s => s !== undefined)
}

/** One file, or two where the second has nearly as much evidence as the first; ten lines from the hit, as far as nothing more was seen. */
function answer(ranked: readonly Ranked[]): string {
  const [best, next] = ranked
  if (!best) return answerText([], [])
  const files = next?.strong && best.strong && next.score > 0.8 * best.score ? [best, next] : [best]
  const ranges = files.flatMap(({ path, line }) => (line === undefined ? [] : [{ path, start: line, end: line + 10 }]))
  return answerText(
    files.map(f => f.path),
    ranges,
  )
}
