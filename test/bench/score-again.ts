import { loadEngine } from '#cg/engine/load.js'
import type { Adapter, BackendName, Precision } from '#cg/engine/types.js'
import { groups } from '#cg/record/groups.js'
import type { Known } from '#cg/record/item.js'
import { readRecords } from '#cg/record/read.js'
import { temperatureOf, tokenRow } from '#cg/train/sequence.js'
import { findAdapter, findModel } from './find-weights.js'

export type ScoreAgainOptions = {
  /** Directories; undefined: found by what the records say of their policy. */
  model?: string | undefined
  adapter?: string | undefined
  backend?: BackendName
  /** Default: the precision that the rollouts were sampled in. */
  dtype?: Precision | undefined
  /** 0: all cores. */
  threads?: number
}

export type ScoredAgain = {
  rollouts: number
  /** Generated ones, which are the ones with a log-prob. */
  tokens: number
  /** Of |log-prob of the trainer's pass − log-prob that the sampler recorded|, in nats. */
  largest: number
  /** Where the largest one is. */
  at: { rollout: string; token: number } | undefined
  /** Kinds of arithmetic, recorded and ours. */
  recorded: string
  ours: string
}

/**
 * Computes the log-probs of stored rollouts with the trainer's pass, a group at a time as a step does, and compares them with those that the sampler recorded.
 *
 * Throws an Error for a rollout without tokens (faults that left none are passed over), for a model or adapter that is not found, for several models in one file,
 * and what the engine throws.
 */
export async function scoreAgain(file: string, options: ScoreAgainOptions = {}): Promise<ScoredAgain> {
  const result: ScoredAgain = { rollouts: 0, tokens: 0, largest: 0, at: undefined, recorded: '', ours: '' }
  let open: Awaited<ReturnType<typeof openModel>> | undefined
  try {
    for await (const found of groups(readRecords(file, ['rollout']))) {
      if (found.kind !== 'group') continue
      for (const members of byAdapter(found.rollouts.filter(withTokens))) {
        const { policy, tokens } = members[0]!.record
        if (policy.kind !== 'native')
          throw new Error(`${place(members[0]!)}: sampled by ${policy.kind}:${policy.name}, not by native:MODEL`)
        open ??= await openModel(members[0]!, file, options)
        if (policy.model_sha256 !== open.sha256) throw new Error(`${place(members[0]!)}: another model sampled it than those before`)
        result.recorded = tokens!.logprob_kind
        result.ours = open.model.info.logprobKind
        await compare(members, open.model, await open.adapterOf(members[0]!), result)
      }
    }
  } finally {
    open?.close()
  }
  if (result.rollouts === 0) throw new Error(`${file}: no rollout in it`)
  return result
}

type Row = Known<'rollout'>

async function openModel(
  first: Row,
  file: string,
  { model: given, adapter: givenAdapter, backend = 'cpu', dtype, threads = 0 }: ScoreAgainOptions,
) {
  const { policy, tokens } = first.record
  const sampledIn: Precision = tokens!.logprob_kind.endsWith('/bf16') ? 'bf16' : 'fp32'
  const model = await loadEngine().loadModel(await findModel(policy, file, given), { backend, threads, dtype: dtype ?? sampledIn })
  const adapters = new Map<string, Adapter | null>()
  return {
    model,
    sha256: policy.model_sha256,
    async adapterOf({ record }: Row): Promise<Adapter | null> {
      const key = record.policy.adapter_sha256 ?? ''
      if (!adapters.has(key)) {
        const dir = await findAdapter(record.policy, file, givenAdapter)
        adapters.set(key, dir === null ? null : await model.loadAdapter(dir))
      }
      return adapters.get(key)!
    },
    close() {
      for (const adapter of adapters.values()) adapter?.dispose()
      model.dispose()
    },
  }
}

async function compare(
  members: readonly Row[],
  model: Awaited<ReturnType<typeof openModel>>['model'],
  adapter: Adapter | null,
  result: ScoredAgain,
): Promise<void> {
  const limits = { realVocab: model.info.realVocab, maxPositions: model.info.maxPositions }
  const rows = members.map(({ record }) => ({ row: tokenRow(record.tokens!, record.turns.length, limits), record }))
  const sequences = rows.map(({ row, record }) => ({ ids: row.ids, spans: row.spans, temperature: temperatureOf(record) }))
  const { logprobs } = await model.score({ sequences, adapter })
  let next = 0
  for (const { row, record } of rows) {
    const old = record.tokens!.logprobs
    if (old.length !== row.lossTokens)
      throw new Error(`rollout ${record.id}: ${old.length} log-probs for ${row.lossTokens} generated tokens`)
    for (const [token, recorded] of old.entries()) {
      const difference = Math.abs(logprobs[next++]! - Math.fround(recorded))
      // a difference that is no number must not pass for none
      if (difference <= result.largest) continue
      result.largest = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference
      result.at = { rollout: record.id, token }
    }
    result.rollouts++
    result.tokens += old.length
  }
}

/** A fault may have left no tokens; any other rollout without them is text. */
function withTokens(row: Row): boolean {
  if (row.record.tokens !== undefined) return true
  if (row.record.stop === 'fault') return false
  throw new Error(`${place(row)}: it has no tokens (it is text-only), so there is nothing to score; sample with native:MODEL`)
}

function byAdapter(rows: readonly Row[]): Row[][] {
  const parts = new Map<string, Row[]>()
  for (const row of rows) {
    const key = row.record.policy.adapter_sha256 ?? ''
    parts.set(key, [...(parts.get(key) ?? []), row])
  }
  return [...parts.values()]
}

function place({ record, origin }: Row): string {
  return `${origin.file}:${origin.line}: rollout ${record.id}`
}
