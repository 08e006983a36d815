import type { TrainSequence } from '../engine/types.js'
import { RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import type { Rollout, Tokens } from '../record/schema.js'

/** What a model can take. */
export type Limits = {
  /** Ids from 0 to this − 1 mean something; rows above are padding. */
  realVocab: number
  /** Tokens of a context. */
  maxPositions: number
}

/** Token ids and the generated pieces of them; `turns[i]` is the turn of span i. */
export type TokenRow = { ids: Int32Array; spans: Int32Array; turns: number[]; lossTokens: number }

/**
 * Checks the tokens of a rollout against a model and brings them into the engine's form: spans as pairs [begin, end).
 *
 * Throws RecordFault E_TOKENS (spans out of order or outside, a log-prob too few), E_VOCABULARY (an id above the model's), E_CONTEXT (too long).
 */
export function tokenRow(tokens: Pick<Tokens, 'ids' | 'spans'>, turns: number, limits: Limits): TokenRow {
  const { ids, spans } = tokens
  const alien = ids.findIndex(id => id >= limits.realVocab)
  if (alien >= 0)
    throw new RecordFault(
      'E_VOCABULARY',
      `token id ${ids[alien]} (place ${alien}), and the model's vocabulary ends at ${limits.realVocab - 1}: this rollout was tokenised for another model`,
    )
  if (ids.length > limits.maxPositions)
    throw new RecordFault(
      'E_CONTEXT',
      `${ids.length} tokens, and the model has ${limits.maxPositions} positions: leave it out, or sample shorter ones`,
    )
  let before = 1 // the first token is predicted from nothing
  let lossTokens = 0
  const pairs: number[] = []
  for (const [begin, end, turn] of spans) {
    if (begin < before || end <= begin || end > ids.length || turn >= turns)
      throw new RecordFault(
        'E_TOKENS',
        `span [${begin}, ${end}, ${turn}] of ${ids.length} tokens and ${turns} turns: spans stand in order, do not overlap and do not begin at 0`,
      )
    pairs.push(begin, end)
    lossTokens += end - begin
    before = end
  }
  return { ids: Int32Array.from(ids), spans: Int32Array.from(pairs), turns: spans.map(span => span[2]), lossTokens }
}

/**
 * A rollout as a sequence of a policy loss: tokens, the sampler's log-probs as `old`, one advantage per span, its own temperature.
 *
 * Undefined: a fault that left no tokens; it counts in denominators alone. Throws RecordFault with the rollout's line: E_NO_TOKENS (text-only),
 * E_NO_ADVANTAGE (not rewarded), E_TURNS (another number of advantages than of turns), and those of `tokenRow`.
 */
export function policySequence(item: Known<'rollout'>, limits: Limits): TrainSequence | undefined {
  const { record } = item
  const { tokens } = record
  if (record.stop === 'fault') return undefined
  try {
    if (tokens === undefined)
      throw new RecordFault(
        'E_NO_TOKENS',
        `rollout ${record.id} has no tokens (it is text-only): grpo needs the sampled ids; sample with native:MODEL, or train with sft or awr`,
      )
    const row = tokenRow(tokens, record.turns.length, limits)
    if (tokens.logprobs.length !== row.lossTokens)
      throw new RecordFault('E_TOKENS', `${tokens.logprobs.length} log-probs for ${row.lossTokens} generated tokens`)
    return {
      ids: row.ids,
      spans: row.spans,
      old: Float32Array.from(tokens.logprobs),
      advantages: Float32Array.from(perSpan(advantagesOf(record), row.turns, 'advantages', record)),
      temperature: temperatureOf(record),
    }
  } catch (error) {
    if (error instanceof RecordFault) error.origin ??= item.origin
    throw error
  }
}

/** One value for each span, from one for each turn. */
export function perSpan(values: number | readonly number[], turns: readonly number[], what: string, record: Rollout): number[] {
  if (typeof values === 'number') return turns.map(() => values)
  if (values.length !== record.turns.length)
    throw new RecordFault('E_TURNS', `${values.length} ${what} for ${record.turns.length} turns: one for each turn`)
  return turns.map(turn => values[turn]!)
}

/** Log-probs are of the distribution that was sampled; greedy ones are recorded at T = 1 (stream contract, "Tokens"). */
export function temperatureOf(record: Rollout): number {
  return record.sampling.temperature === 0 ? 1 : record.sampling.temperature
}

function advantagesOf(record: Rollout): number | readonly number[] {
  if (record.advantage === undefined)
    throw new RecordFault('E_NO_ADVANTAGE', `rollout ${record.id} has no advantage: pipe it through cg-reward first`)
  return record.advantage
}
