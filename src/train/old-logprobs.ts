import type { Adapter, Model, TrainSequence } from '../engine/types.js'
import { RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import type { PolicyIdentity } from '../record/schema.js'
import { spanTokens } from './denominators.js'
import type { PolicyBatch } from './policy-batch.js'

export type Recorder = {
  model: Pick<Model, 'info' | 'score'>
  /** `modelDigest` of the model that trains. */
  modelSha256: string
  /** The adapter of a policy that sampled: null is the base model, undefined means that this run does not have it (any more). */
  adapterOf(policy: PolicyIdentity): Promise<Adapter | null | undefined>
}

/**
 * Makes every sequence's old log-probs ones that the trainer's own may be compared with.
 *
 * Those recorded with the trainer's own `logprob_kind` stay as they are. Others come from other arithmetic: they are computed again with the version that the
 * rollout names. Throws RecordFault E_POLICY where that cannot be done, or another model sampled. Returns how many rollouts were scored again.
 */
export async function settleOldLogprobs(batch: PolicyBatch, recorder: Recorder): Promise<number> {
  const again = new Map<Adapter | null, TrainSequence[]>()
  for (const [g, group] of batch.groups.entries())
    for (const [i, sequence] of group.sequences.entries()) {
      const item = batch.rows[g]![i]!
      const { policy, tokens } = item.record
      const { logprobKind } = recorder.model.info
      if (policy.model_sha256 !== undefined && policy.model_sha256 !== recorder.modelSha256)
        throw refusal(item, `it was sampled from model ${short(policy.model_sha256)}, and this is ${short(recorder.modelSha256)}`)
      if (tokens!.logprob_kind === logprobKind) continue
      const kinds = `its log-probs are of kind ${tokens!.logprob_kind}, ours of ${logprobKind}`
      if (policy.kind !== 'native' || policy.model_sha256 === undefined)
        throw refusal(item, `${kinds}, and it does not say which model and adapter sampled it`)
      const adapter = await recorder.adapterOf(policy)
      if (adapter === undefined)
        throw refusal(
          item,
          `${kinds}, and the adapter that sampled it (${short(policy.adapter_sha256 ?? '')}) is not among this run's versions`,
        )
      again.set(adapter, [...(again.get(adapter) ?? []), sequence])
    }

  let count = 0
  for (const [adapter, sequences] of again) {
    const { logprobs } = await recorder.model.score({ sequences, adapter })
    let from = 0
    for (const sequence of sequences) {
      const n = spanTokens(sequence.spans)
      sequence.old = logprobs.slice(from, from + n)
      from += n
      count++
    }
  }
  return count
}

function refusal(item: Known<'rollout'>, why: string): RecordFault {
  const fault = new RecordFault(
    'E_POLICY',
    `rollout ${item.record.id} cannot be weighed: ${why}; sample again with this model, or train with sft or awr`,
  )
  fault.origin = item.origin
  return fault
}

function short(digest: string): string {
  return digest.slice(0, 12)
}
