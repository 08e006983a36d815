import { canonical, contentId, sha256 } from '../record/canonical.js'
import type { Rollout, Score, Target } from '../record/schema.js'
import { isAnswered, type Scored, scoreRollout } from '../score/score-rollout.js'
import { policyLabel } from './policy-label.js'

/** Instance fields that a score keeps, where the rollout has them, so that tables can be broken down by them. */
const keptFields = ['issue_kind', 'misleads']

export type ScoreRecordOptions = {
  /** Instead of the policy's. */ name?: string | undefined /** More instance fields to keep. */
  fields?: readonly string[]
}

/** What has to be computed for a score. */
export type Figures = Pick<Score, 'f05' | 'precision' | 'recall' | 'calls_per_turn'>

/** File-level F0.5, precision and recall, and c̄. A rollout that failed has 0 in the first three; one without a valid answer predicts nothing. */
export function scoreFigures(rollout: Scored, target: Target): Figures {
  const { file, callsPerTurn: calls_per_turn } = scoreRollout(rollout, target)
  if (rollout.stop === 'fault') return { f05: 0, precision: 0, recall: 0, calls_per_turn }
  return { f05: file.f, precision: file.precision, recall: file.recall, calls_per_turn }
}

/** The `score` record of a rollout: its figures against the target, and what it spent. */
export function scoreRecord(rollout: Rollout, target: Target, figures: Figures, { name, fields = [] }: ScoreRecordOptions = {}): Score {
  const calls = rollout.turns.flatMap(turn => turn.calls)
  const seconds = rollout.timing?.seconds
  return {
    kind: 'score',
    v: 1,
    id: contentId('score', [rollout.id], { target: sha256(canonical(target)) }),
    rollout: rollout.id,
    instance_id: rollout.instance_id,
    name: name ?? policyLabel(rollout.policy),
    gold_rules: target.gold_rules,
    f05: figures.f05,
    precision: figures.precision,
    recall: figures.recall,
    answered: isAnswered(rollout),
    fault: rollout.stop === 'fault',
    turns: rollout.turns.length,
    calls: calls.length,
    calls_not_run: calls.filter(call => call.status === 'not-run').length,
    calls_per_turn: figures.calls_per_turn,
    tokens: rollout.usage.generated,
    ...(rollout.reward === undefined ? {} : { reward: rollout.reward }),
    ...kept(rollout, [...keptFields, ...fields]),
    ...(typeof seconds === 'number' ? { timing: { seconds } } : {}),
  }
}

function kept(rollout: Rollout, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(fields.filter(field => rollout[field] !== undefined).map(field => [field, rollout[field]]))
}
