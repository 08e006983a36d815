import type { StepDenominators, TrainGroup, TrainSequence } from '../engine/types.js'
import { RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import type { StepRows } from './collect-steps.js'
import { denominators } from './denominators.js'
import { type Limits, policySequence } from './sequence.js'
import { type StepFacts, stepFacts } from './step-facts.js'

/** One optimiser step in the engine's form. `rows[g][i]` is where sequence i of group g came from. */
export type PolicyBatch = {
  groups: TrainGroup[]
  rows: Known<'rollout'>[][]
  denominators: StepDenominators
  facts: StepFacts
}

/**
 * Builds a step of a policy loss from its rollouts; every group is one trie. Rollouts that left no tokens (faults) and groups without any are left out, and
 * stay in the denominators; so do those that `policySequence` refuses, when `refused` does not throw.
 */
export function policyBatch(step: StepRows, limits: Limits, refused: (error: RecordFault, item: Known<'rollout'>) => void): PolicyBatch {
  const groups: TrainGroup[] = []
  const rows: Known<'rollout'>[][] = []
  for (const { index, rollouts } of step.groups) {
    const sequences: TrainSequence[] = []
    const from: Known<'rollout'>[] = []
    for (const item of rollouts) {
      const sequence = accepted(item, limits, refused)
      if (sequence === undefined) continue
      sequences.push(sequence)
      from.push(item)
    }
    if (sequences.length === 0) continue
    groups.push({ index, sequences })
    rows.push(from)
  }
  return { groups, rows, denominators: denominators(step.asked, groups), facts: stepFacts(step.groups) }
}

function accepted(
  item: Known<'rollout'>,
  limits: Limits,
  refused: (error: RecordFault, item: Known<'rollout'>) => void,
): TrainSequence | undefined {
  try {
    return policySequence(item, limits)
  } catch (error) {
    if (!(error instanceof RecordFault)) throw error
    refused(error, item)
    return undefined
  }
}
