import { existsSync } from 'node:fs'
import { FatalError } from '../record/fault.js'
import type { Item } from '../record/item.js'
import { readRecords } from '../record/read.js'
import type { Score } from '../record/schema.js'
import { cachedScore } from './cached-score.js'
import type { Context } from './command.js'
import { followUpstream } from './upstream.js'

/** Kinds that figures can be made from. */
export const scorable = ['rollout', 'score', 'fault'] as const

/** A file of rollouts or scores, and what its policy is called. */
export type NamedInput = { name?: string; file: string }

/** `NAME=FILE` or FILE. A file that exists under the whole name is never cut. Throws FatalError E_READ for a file that is not there. */
export function namedInput(argument: string): NamedInput {
  const cut = argument.indexOf('=')
  const named = cut > 0 && !existsSync(argument) ? { name: argument.slice(0, cut), file: argument.slice(cut + 1) } : { file: argument }
  if (named.file !== '-' && !existsSync(named.file))
    throw new FatalError('E_READ', `${named.file || argument}: no such file: check the name`)
  return named
}

/** The records of a file that the command opens by itself, counted as the runner counts its own input; early ends are said. */
export async function* readInput(file: string, context: Context): AsyncGenerator<Item> {
  const upstream = followUpstream()
  yield* readRecords(file, scorable, {
    signal: context.signal,
    seen(kind, value) {
      upstream.observe(kind, value)
      if (kind === 'rollout' || kind === 'score') context.count.in++
    },
  })
  for (const name of upstream.early()) context.warn(`${file}: upstream ${name} ended early`)
}

/** Gathers scores and says what is wrong with them. */
export function collectScores(context: Context, fields: readonly string[]) {
  const scores: Score[] = []
  const seen = new Set<string>()
  let withoutTarget = 0
  let repeated = 0
  let faults = 0

  return {
    /** Takes a record; false when it is none that figures can be made from. `name` goes before the record's own. */
    take(item: Item, name: string | undefined): boolean {
      if (item.kind === 'fault') faults++
      if (item.kind !== 'rollout' && item.kind !== 'score') return item.kind === 'fault'
      const score =
        item.kind === 'score' ? { ...item.record, name: name ?? item.record.name } : cachedScore(item.record, { name, fields }, context)
      if (score === undefined) withoutTarget++
      else if (seen.has(`${score.name}\0${score.rollout}`)) repeated++
      else {
        seen.add(`${score.name}\0${score.rollout}`)
        scores.push(score)
      }
      return true
    },
    /** All scores; what was left out, failed or gave no answer goes to standard error. */
    finish(): Score[] {
      const failed = scores.filter(score => score.fault).length
      const unanswered = scores.filter(score => !score.fault && !score.answered).length
      if (withoutTarget > 0)
        context.warn(`${withoutTarget} rollouts have no target and are in no row: run their instances through cg-mine gold first`)
      if (repeated > 0) context.warn(`${repeated} rollouts came twice under one name and count once`)
      if (faults > 0) context.warn(`${faults} faults of earlier stages are in no row`)
      if (failed > 0) context.say(`${failed} rollouts failed and count as 0`)
      if (unanswered > 0) context.say(`${unanswered} rollouts gave no valid answer and count as the empty prediction`)
      return scores
    },
  }
}
