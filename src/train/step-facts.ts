import type { Known } from '../record/item.js'
import type { Rollout } from '../record/schema.js'
import { callsPerTurn } from '../score/calls-per-turn.js'
import type { StepGroup } from './collect-steps.js'

/** What a step's rollouts say by themselves, for its record. Means are over the rollouts that arrived and did not fail; null: there were none. */
export type StepFacts = {
  rollouts: number
  faults: number
  reward: number | null
  turns: number | null
  calls_per_turn: number | null
  /** Share of rollouts that ended with an answer. */
  answered: number | null
  /** Groups whose rewards are all equal, or that have fewer than two: nothing to learn from. */
  zero_variance: number
}

/** Counts and averages over the rollouts of a step. */
export function stepFacts(groups: readonly StepGroup[]): StepFacts {
  const all = groups.flatMap(group => group.rollouts.map(({ record }) => record))
  const good = all.filter(record => record.stop !== 'fault')
  const rewards = good.flatMap(record => (record.reward === undefined ? [] : [record.reward]))
  return {
    rollouts: all.length,
    faults: all.length - good.length,
    reward: mean(rewards),
    turns: mean(good.map(record => record.turns.length)),
    calls_per_turn: mean(good.map(issuedPerTurn)),
    answered: mean(good.map(record => (record.stop === 'answer' ? 1 : 0))),
    zero_variance: groups.filter(group => sameRewards(group.rollouts)).length,
  }
}

function issuedPerTurn(record: Rollout): number {
  const calls = record.turns.map(turn => turn.calls.length)
  return callsPerTurn(calls, record.stop === 'answer')
}

function sameRewards(rollouts: readonly Known<'rollout'>[]): boolean {
  const rewards = rollouts.flatMap(({ record }) => (record.stop === 'fault' || record.reward === undefined ? [] : [record.reward]))
  return rewards.length < 2 || Math.max(...rewards) === Math.min(...rewards)
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
}
