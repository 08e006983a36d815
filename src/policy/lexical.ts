import { parseCalls } from '../model/parse-calls.js'
import { sha256 } from '../record/canonical.js'
import { answerText, callText } from './call-text.js'
import { issueClues } from './lexical-clues.js'
import { noisyTurn } from './lexical-noise.js'
import { type Ranked, rankFiles } from './lexical-rank.js'
import { firstSearches, type Search, searchKey, secondSearches } from './lexical-search.js'
import type { Message, Policy, TurnRequest } from './policy.js'

/** Searches that it knows to make at first, and again when those found nothing to rely on. */
const mostSearches = 8

/**
 * A scripted agent: takes names, paths, messages and modules from the issue, searches for all of them in one turn, or in several when fewer calls are allowed,
 * goes on with the words of the issue when that found nothing to rely on, and answers with the one or two files that have most evidence.
 *
 * It sees what a model sees, writes what a model could write and draws nothing: a baseline, and a teacher for supervised fine-tuning. Samples of an instance after
 * the first search in other orders, so that they also show how to go on after a search that found nothing.
 *
 * @param noise above 0 it is another agent, that draws what it does and makes that share of its decisions badly (see `noisyTurn`)
 */
export function lexicalPolicy(noise = 0): Policy {
  const name = noise === 0 ? 'lexical' : `lexical+noise:${noise}`
  return {
    identity: { kind: 'lexical', name, revision: 3, ...(noise === 0 ? {} : { noise, noise_revision: 1 }) },
    tokens: false,
    scripted: noise === 0,
    submit: async request => ({ text: noise === 0 ? nextTurn(request) : noisyTurn(request, noise), stop: 'stop' }),
    release: () => {},
    close: async () => {},
  }
}

function nextTurn({ instance, sample, messages, last, maxCalls }: TurnRequest): string {
  const clues = issueClues(instance)
  const observations = messages.filter(m => m.role === 'tool').map(m => m.content)
  const turns = messages.filter(m => m.role === 'assistant')
  const first = firstSearches(clues, mostSearches)
  const second = secondSearches(clues, new Set(first.map(s => searchKey(s.call))), mostSearches)

  const made = searchesMade(turns, first, second)
  const ranked = rankFiles(made, observations)
  const left = [first, second].map(searches => searches.filter(s => !made.includes(s))).find(searches => searches.length > 0)
  if (last || ranked[0]?.strong || !left || first.length === 0) return answer(ranked)
  return callText(
    inOrder(left, instance.instance_id, sample)
      .slice(0, maxCalls)
      .map(s => s.call),
  )
}

/** Sample 0 makes the most promising searches first, each further one has an order of its own. */
function inOrder(searches: readonly Search[], instance: string, sample: number): readonly Search[] {
  if (sample === 0) return searches
  const place = new Map(searches.map(s => [s, sha256(`${instance} ${sample} ${searchKey(s.call)}`)]))
  return [...searches].sort((a, b) => (place.get(a)! < place.get(b)! ? -1 : 1))
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
