import { type Figures, type ScoreRecordOptions, scoreFigures, scoreRecord } from '../eval/score-record.js'
import { canonical, sha256 } from '../record/canonical.js'
import type { Rollout, Score } from '../record/schema.js'
import type { Context } from './command.js'

/** The score of a rollout, its figures from the cache where they are there; undefined for a rollout without target. */
export function cachedScore(rollout: Rollout, options: ScoreRecordOptions, { cache, count }: Context): Score | undefined {
  const { target, turns, answer, stop } = rollout
  if (target === undefined) return undefined
  const input = sha256(canonical({ target, answer, stop, calls: turns.map(turn => turn.calls.length) }))
  const key = { stage: 'eval score', version: 1, input }
  let figures = cache.get(key) as Figures | undefined
  if (figures !== undefined) count.cached++
  else {
    figures = scoreFigures(rollout, target)
    cache.put(key, figures)
  }
  return scoreRecord(rollout, target, figures, options)
}
