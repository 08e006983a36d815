import type { Rollout, Target } from '../record/schema.js'
import { type Scored, type ScoreOptions, scoreRollout } from '../score/score-rollout.js'
import { type AdvantageOptions, groupAdvantages, zeroVariance } from './group-advantage.js'
import { type SchemeName, schemes } from './schemes.js'
import { turnWeight } from './turn-weight.js'

export type RewardOptions = { scheme: SchemeName; score: ScoreOptions; advantage: AdvantageOptions }

/** What a reward adds to a rollout. A rollout that failed gets neither reward nor weights. */
export type RewardFields = Pick<Rollout, 'reward' | 'advantage' | 'weights'>

/** The reward of one rollout; null for one that failed (`stop: fault`). */
export function rolloutReward(rollout: Scored, target: Target, options: RewardOptions): number | null {
  if (rollout.stop === 'fault') return null
  return schemes[options.scheme].reward(summary(rollout, target, options))
}

/**
 * Rewards, advantages and turn weights of a group that answers one prompt, in its order (CodeGrep, section 3.5; formulas 1.4).
 *
 * The scheme's scale multiplies the advantage after the group is normalised. Failed rollouts are outside mean and deviation and have advantage 0.
 */
export function scoreGroup(
  rollouts: readonly Scored[],
  target: Target,
  options: RewardOptions,
): { fields: RewardFields[]; zeroVariance: boolean } {
  const rewards = rollouts.map(rollout => rolloutReward(rollout, target, options))
  const advantages = groupAdvantages(rewards, options.advantage)
  const fields = rollouts.map((rollout, n): RewardFields => {
    const reward = rewards[n]!
    if (reward === null) return { advantage: 0 }
    const advantage = advantages[n]! * schemes[options.scheme].advantageScale(summary(rollout, target, options))
    return { reward, advantage, weights: rollout.turns.map(() => turnWeight(advantage)) }
  })
  return { fields, zeroVariance: zeroVariance(rewards) }
}

function summary(rollout: Scored, target: Target, options: RewardOptions) {
  const { file, range, callsPerTurn } = scoreRollout(rollout, target, options.score)
  return { fFile: file.f, fRange: range.f, callsPerTurn }
}
