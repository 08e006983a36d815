import { canonical, sha256 } from '../record/canonical.js'
import { RecordFault, UsageError } from '../record/fault.js'
import { mapGroups } from '../record/groups.js'
import type { Item } from '../record/item.js'
import type { Rollout, Target } from '../record/schema.js'
import { standardDeviation } from '../reward/group-advantage.js'
import { type SchemeName, schemes } from '../reward/schemes.js'
import { type RewardFields, type RewardOptions, rolloutReward, scoreGroup } from '../reward/score-group.js'
import { type Context, command } from './command.js'
import { type OptionValues, option } from './options.js'

const options = {
  scheme: option.choice(Object.keys(schemes) as SchemeName[], 'codegrep-v3', 'how a rollout is scored'),
  beta: option.number(0.5, 'F-beta: below 1 favours precision', { min: 0 }),
  rangeMatch: option.choice(
    ['coverage', 'jaccard'],
    'coverage',
    'a predicted range matches when it covers half of a gold range, or half of their union is shared',
  ),
  countTurns: option.choice(
    ['answer-free', 'paper', 'exploring'],
    'answer-free',
    'calls per turn: without the calls beside the answer, with them, or without the answering turn at all',
  ),
  std: option.choice(
    ['group', 'batch', 'none'],
    undefined,
    'what a group advantage is divided by (default: group; none with --baseline loo)',
  ),
  baseline: option.choice(['mean', 'loo'], 'mean', "what is subtracted: the group's mean, or the mean of the others"),
  eps: option.number(1e-4, 'added to the standard deviation', { min: 0 }),
  stdDdof: option.integer(1, 'standard deviation over n - 1 (1) or n (0)', { min: 0, max: 1 }),
}

export default command({
  name: 'cg-reward',
  about: 'score rollouts and turn each group into advantages and token weights',
  notes: [
    ...Object.entries(schemes).map(([name, scheme]) => `${name}: reward ${scheme.about}.`),
    'A rollout without a valid answer predicts nothing. One that failed (stop: fault) gets no reward: it is outside mean and deviation, its advantage is 0. A group of equal rewards has advantage 0; such groups are counted.',
    '--std batch takes the deviation of all rewards up to the next barrier, else of the whole input, and holds these rollouts in memory.',
    'weights has one number a turn for cg-train awr: exp(1.5 A) between 0.1 and 3.',
  ],
  reads: ['rollout'],
  writes: ['rollout', 'fault'],
  options,
  examples: [
    ['score a file of rollouts', 'cg-reward --scheme codegrep-v3 rollouts.ndjson > rewarded.ndjson'],
    ['only the group arithmetic changes', 'cg-reward --std none rewarded.ndjson > centred.ndjson'],
  ],

  // A group is complete with group.size members, at a barrier or at the end of input. Waiting only for the next group to begin would deadlock an on-policy
  // pipe: that group waits for the trainer, and the trainer for this one.
  async *run(input, values, context) {
    const reward = rewardOptions(values)
    let groups = 0
    let equal = 0
    const batched = reward.advantage.std === 'batch' ? untilBarrier(input, reward) : input
    yield* mapGroups(batched, context.warn, group => {
      const rollouts = group.rollouts.map(rollout => rollout.record)
      try {
        const { fields, zeroVariance } = cachedGroup(rollouts, targetOf(rollouts[0]!), reward, context)
        groups++
        if (zeroVariance) equal++
        return rollouts.map((rollout, n) => rewarded(rollout, fields[n]!))
      } catch (error) {
        if (!(error instanceof RecordFault)) throw error
        return group.rollouts.map(rollout => context.fault(new RecordFault(error.code, error.message, error.retry), rollout))
      }
    })
    if (equal > 0)
      context.say(`${equal} of ${groups} groups have a single scored rollout or equal rewards: advantage 0, nothing to learn from them`)
  },
})

function rewardOptions(values: OptionValues<typeof options>): RewardOptions {
  const { scheme, beta, rangeMatch, countTurns, baseline, eps, stdDdof } = values
  if (baseline === 'loo' && values.std !== undefined && values.std !== 'none')
    throw new UsageError(`--baseline loo is defined without a standard deviation: leave out --std ${values.std}`)
  const std = values.std ?? (baseline === 'loo' ? 'none' : 'group')
  return { scheme, score: { beta, rangeMatch, countTurns }, advantage: { std, baseline, eps, ddof: stdDdof as 0 | 1 } }
}

/** Holds the input back up to each barrier, to set the deviation of the rewards that stand before it. */
async function* untilBarrier(input: AsyncIterable<Item>, reward: RewardOptions): AsyncGenerator<Item> {
  let held: Item[] = []
  const settle = () => {
    const rewards = held.flatMap(item => {
      if (item.kind !== 'rollout' || item.record.target === undefined) return []
      return rolloutReward(item.record, item.record.target, reward) ?? []
    })
    reward.advantage.batchStd = standardDeviation(rewards, reward.advantage.ddof)
    const items = held
    held = []
    return items
  }
  for await (const item of input) {
    if (item.kind === 'barrier') yield* settle()
    if (item.kind === 'barrier') yield item
    else held.push(item)
  }
  yield* settle()
}

type GroupReward = { fields: RewardFields[]; zeroVariance: boolean }

function cachedGroup(rollouts: readonly Rollout[], target: Target, reward: RewardOptions, context: Context): GroupReward {
  const members = rollouts.map(({ turns, answer, stop }) => ({ calls: turns.map(turn => turn.calls.length), answer, stop }))
  const key = { stage: 'reward', version: 1, reward, input: sha256(canonical({ target, members })) }
  const cached = context.cache.get(key) as GroupReward | undefined
  if (cached !== undefined) {
    context.count.cached += rollouts.length
    return cached
  }
  const result = scoreGroup(rollouts, target, reward)
  context.cache.put(key, result)
  return result
}

/** What an earlier reward left goes, also where nothing takes its place. */
function rewarded(rollout: Rollout, fields: RewardFields): Rollout {
  const { reward: _reward, advantage: _advantage, weights: _weights, ...rest } = rollout
  return { ...rest, ...fields } as Rollout
}

function targetOf({ instance_id, target }: Rollout): Target {
  if (target === undefined)
    throw new RecordFault(
      'E_TARGET',
      `rollout of ${instance_id} has no target to score against: run its instances through cg-mine gold first`,
    )
  return target
}
