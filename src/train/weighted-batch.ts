import type { TrainGroup } from '../engine/types.js'
import { RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import type { Rollout } from '../record/schema.js'
import { denominators } from './denominators.js'
import type { BuiltStep } from './loop.js'
import { type Limits, perSpan, temperatureOf, tokenRow } from './sequence.js'
import type { Spool, SpoolRow } from './spool.js'
import type { Tokenise } from './tokenise.js'
import { withContext } from './with-context.js'

/**
 * How rollouts become rows: `weights` from the records (awr), or 1 everywhere (sft); `temperature` of text-only rollouts, those with tokens bring their own;
 * `contextWeight` of tokens that the model did not write.
 */
export type RowPlan = {
  limits: Limits
  weighted: boolean
  minReward: number | undefined
  temperature: number
  contextWeight: number
  tokenise: Tokenise
}

/**
 * A rollout as a row to imitate. Undefined: left out, because it failed, says nothing, or its reward is below the least wanted.
 *
 * Text-only rollouts are tokenised once, here. Throws RecordFault E_NO_WEIGHTS (awr without weights), E_NO_REWARD (a least reward and none in the record),
 * E_TURNS, and those of `tokenRow`.
 */
export async function weightedRow(item: Known<'rollout'>, plan: RowPlan): Promise<SpoolRow | undefined> {
  const { record } = item
  if (record.stop === 'fault' || record.turns.length === 0) return undefined
  if (plan.minReward !== undefined) {
    if (record.reward === undefined)
      throw new RecordFault(
        'E_NO_REWARD',
        `rollout ${record.id} has no reward, and --min-reward asks for one: pipe it through cg-reward first`,
      )
    if (record.reward < plan.minReward) return undefined
  }
  const tokens = record.tokens ?? (await plan.tokenise(record))
  const row = tokenRow(tokens, record.turns.length, plan.limits)
  if (row.lossTokens === 0) return undefined
  const ids = Array.from(row.ids)
  const learnt = {
    spans: Array.from(row.spans),
    weights: perSpan(plan.weighted ? weightsOf(record) : 1, row.turns, 'weights', record),
  }
  const { spans, weights } = plan.contextWeight > 0 ? withContext(learnt, ids.length, plan.contextWeight) : learnt
  return { ids, spans, weights, temperature: record.tokens ? temperatureOf(record) : plan.temperature }
}

/** A batch in the engine's form: rows of one prompt share a trie. `facts`: rollouts of the batch. */
export function weightedBatch(spool: Spool, indices: readonly number[]): BuiltStep {
  const groups: TrainGroup[] = []
  const byPrompt = new Map<string, TrainGroup>()
  for (const index of indices) {
    const { ids, spans, weights, temperature } = spool.read(index)
    const prompt = spool.names[index]!.group
    let group = byPrompt.get(prompt)
    if (!group) {
      group = { index: groups.length, sequences: [] }
      groups.push(group)
      byPrompt.set(prompt, group)
    }
    group.sequences.push({ ids: Int32Array.from(ids), spans: Int32Array.from(spans), weights: Float32Array.from(weights), temperature })
  }
  return { groups, denominators: denominators(indices.length, groups), facts: { rollouts: indices.length }, compared: false, faults: [] }
}

function weightsOf(record: Rollout): readonly number[] {
  if (record.weights === undefined)
    throw new RecordFault(
      'E_NO_WEIGHTS',
      `rollout ${record.id} has no weights: pipe it through cg-reward with a scheme that gives turn weights, or use sft`,
    )
  return record.weights
}
