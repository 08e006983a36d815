import { z } from 'zod'
import { count, digest, range, target, task } from './schema-instance.js'

/** One attempt of a policy at one instance. */

export const policyIdentity = z.looseObject({
  kind: z.enum(['native', 'openai', 'bm25', 'lexical', 'replay']),
  name: z.string(),
  model_sha256: digest.optional(),
  adapter_sha256: digest.optional(),
  run_id: z.string().optional(),
  version: count.optional(),
})

export const sampling = z.looseObject({
  temperature: z.number().nonnegative(),
  top_k: count,
  top_p: z.number(),
  min_p: z.number(),
  repetition_penalty: z.number(),
  /** Generated tokens of the whole rollout, and of one turn. */
  max_tokens: count,
  turn_tokens: count.optional(),
  max_turns: count,
  max_calls: count,
  /** Characters of the issue that were shown at most. */
  issue_chars: count.optional(),
  thinking: z.boolean().optional(),
  seed: z.string(),
})

/** How an observation came to be; the same word stands in its last line, in brackets. */
export const callStatus = z.enum([
  'ok',
  'empty',
  'truncated',
  'timeout',
  'bad-call',
  'bad-arguments',
  'unknown-tool',
  'bad-pattern',
  'not-found',
  'refused',
  'binary',
  'not-run',
  'error',
])

export const call = z.looseObject({
  id: z.string(),
  name: z.string(),
  /** As the model wrote them where they do not parse. */
  arguments: z.union([z.record(z.string(), z.unknown()), z.string()]),
  status: callStatus,
  observation: z.string().nullable(),
  truncated: z.boolean(),
})

export const turn = z.looseObject({
  text: z.string(),
  calls: z.array(call),
  /** Generated tokens of the turn; 0 for scripted and text-only policies that do not say. */
  tokens: count,
  stop: z.enum(['stop', 'length', 'error']),
})

export const answer = z.looseObject({
  files: z.array(z.string()),
  ranges: z.array(range),
  modules: z.array(z.string()).default([]),
  functions: z.array(z.string()).default([]),
  parse: z.enum(['exact', 'repaired', 'none']),
})

/** A rollout is its token list; text is a view. */
export const tokens = z.looseObject({
  ids: z.array(count),
  /** [start, end, turn] of each generated piece. */
  spans: z.array(z.tuple([count, count, count])),
  /** One per generated token, float32 in its shortest decimal form. */
  logprobs: z.array(z.number()),
  logprob_kind: z.string(),
})

export const rolloutStop = z.enum(['answer', 'no-call', 'turns', 'length', 'context', 'fault'])

export const rollout = z.looseObject({
  kind: z.literal('rollout'),
  v: z.literal(1),
  id: z.string(),
  ...task,
  target: target.optional(),
  group: z.looseObject({ id: z.string(), size: z.number().int().positive(), index: count }),
  sample: count,
  policy: policyIdentity,
  toolset: z.string(),
  /** Name of the prompt protocol and digest of its words. */
  protocol: z.looseObject({ name: z.string(), digest: z.string() }),
  sampling,
  turns: z.array(turn),
  answer,
  tokens: tokens.optional(),
  usage: z.looseObject({ prompt: count, generated: count, calls: count, turns: count }),
  stop: rolloutStop,
  /** Why a rollout with `stop: fault` failed. */
  fault: z.looseObject({ code: z.string(), message: z.string() }).optional(),
  /** Tool calls that ran into their time limit: such a rollout is not cached. */
  tool_timeouts: count.optional(),
  timing: z.looseObject({}).optional(),
  reward: z.number().optional(),
  advantage: z.union([z.number(), z.array(z.number())]).optional(),
  weights: z.array(z.number()).optional(),
})
