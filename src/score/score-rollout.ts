import type { Rollout, Target } from '../record/schema.js'
import { type CountTurns, callsPerTurn } from './calls-per-turn.js'
import { comparedPath } from './normalise-path.js'
import { type LineRange, type RangeMatch, rangeScore } from './range-score.js'
import { type SetScore, setScore } from './set-score.js'

export type ScoreOptions = { beta: number; rangeMatch: RangeMatch; countTurns: CountTurns }

export const defaultScore: ScoreOptions = { beta: 0.5, rangeMatch: 'coverage', countTurns: 'answer-free' }

/** Files and line ranges against the target, and c̄. */
export type RolloutScore = { file: SetScore; range: SetScore; callsPerTurn: number }

/** The part of a rollout that its score depends on. */
export type Scored = Pick<Rollout, 'turns' | 'answer' | 'stop'>

/** Did it end with an answer that could be read? */
export function isAnswered(rollout: Pick<Rollout, 'stop'>): boolean {
  return rollout.stop === 'answer'
}

/**
 * Scores one rollout against its target (CodeGrep, section 3.5; formulas 1.1 to 1.3).
 *
 * Without a valid answer the prediction is empty. Predicted ranges in files that are gold through mining alone are dropped: no gold range can exist there.
 */
export function scoreRollout(rollout: Scored, target: Target, options: ScoreOptions = defaultScore): RolloutScore {
  const answered = isAnswered(rollout)
  const files = answered ? rollout.answer.files.map(comparedPath) : []
  const ranges = answered ? rollout.answer.ranges.map(compared) : []
  const { beta, rangeMatch: match, countTurns } = options
  const minedOnly = new Set(target.files.filter(file => file.source === 'mined').map(file => comparedPath(file.path)))
  const range = rangeScore(ranges, target.ranges.map(compared), { beta, match, minedOnly })
  return {
    file: setScore(
      files,
      target.files.map(file => comparedPath(file.path)),
      beta,
    ),
    range: { precision: range.precision, recall: range.recall, f: range.f },
    callsPerTurn: callsPerTurn(
      rollout.turns.map(turn => turn.calls.length),
      answered,
      countTurns,
    ),
  }
}

function compared({ path, start, end }: LineRange): LineRange {
  return { path: comparedPath(path), start, end }
}
