import { z } from 'zod'

/**
 * The wire format: one zod schema per record kind (cg-record(5)).
 *
 * Schemas are loose: a field that cg does not know passes through untouched. `kind` and `v` say what a record is; a row without `kind` that has SWE-bench
 * fields is an instance. Paths are repository-relative POSIX, numbers finite, 64-bit ids strings. Everything that a clock measured stands under `timing`.
 */

const count = z.number().int().nonnegative()
const line = z.number().int().positive()
const digest = z.string().regex(/^[0-9a-f]{64}$/)
const path = z.string().min(1)

/** A line range of one file, both ends inclusive, from 1. */
export const range = z.looseObject({ path, start: line, end: line })
export const entity = z.looseObject({ path, name: z.string(), start: line, end: line })

export const target = z.looseObject({
  /** Name and version of the rule set, e.g. `codegrep/1`; tables never mix them. */
  gold_rules: z.string(),
  files: z.array(z.looseObject({ path, weight: z.number().default(1), source: z.enum(['patch', 'mined', 'both']).default('patch') })),
  ranges: z.array(range).default([]),
  modules: z.array(entity).default([]),
  functions: z.array(entity).default([]),
})

/** Facts of this machine, in no id and no key: where the commit's files are. */
export const worktree = z.looseObject({ commit: z.string(), tree: z.string(), path: z.string().optional(), bare: z.string().optional() })

const task = {
  instance_id: z.string(),
  repo: z.string(),
  base_commit: z.string(),
  problem_statement: z.string(),
}

export const instance = z.looseObject({
  kind: z.literal('instance').optional(),
  v: z.literal(1).optional(),
  ...task,
  patch: z.string().optional(),
  worktree: worktree.optional(),
  target: target.optional(),
})

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
  max_tokens: count,
  max_turns: count,
  max_calls: count,
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
  timing: z.looseObject({}).optional(),
  reward: z.number().optional(),
  advantage: z.union([z.number(), z.array(z.number())]).optional(),
  weights: z.array(z.number()).optional(),
})

export const reads = z.looseObject({
  kind: z.literal('reads'),
  v: z.literal(1),
  ...task,
  trajectory_id: z.string(),
  reads: z.array(z.looseObject({ path })),
})
export const trajectory = z.looseObject({ kind: z.literal('trajectory').optional(), v: z.literal(1).optional(), instance_id: z.string() })

/** Of a sum that came out as NaN or infinity: null, and the step was skipped. Of a mean over nothing: null. */
const measure = z.number().nullable()

export const step = z.looseObject({
  kind: z.literal('step'),
  v: z.literal(1),
  step: count,
  /** Policy version that this step made. */
  version: count,
  loss: measure,
  lr: z.number(),
  grad_norm: measure,
  /** Rows of the sequences, and of the tries: what they share is computed once. */
  tokens: count,
  unique_tokens: count,
  loss_tokens: count.optional(),
  /** NaN or infinity in loss or gradient: the adapter stayed as it was. */
  skipped: z.boolean().optional(),
  reward: measure.optional(),
  kl: measure.optional(),
  entropy: measure.optional(),
  clip: measure.optional(),
  turns: measure.optional(),
  calls_per_turn: measure.optional(),
  /** Groups in which all rewards are equal. */
  zero_variance: count.optional(),
  mismatch: z.looseObject({ kl: measure, mult_prob_error: measure, max: measure }).optional(),
  /** A figure on held-out data, of the version that this step made. */
  eval: z.looseObject({ name: z.enum(['f05', 'loss']), value: z.number(), n: count }).optional(),
  /** Of the step's data: its barrier's, else of the rollouts' ids. */
  digest: z.string().optional(),
  timing: z.looseObject({}).optional(),
})

export const score = z.looseObject({
  kind: z.literal('score'),
  v: z.literal(1),
  id: z.string(),
  /** Id of the rollout. */
  rollout: z.string(),
  instance_id: z.string(),
  /** What tables call the policy. */
  name: z.string(),
  gold_rules: z.string(),
  /** File-level F at beta 0.5, precision and recall; all 0 for a rollout that failed. */
  f05: z.number(),
  precision: z.number(),
  recall: z.number(),
  answered: z.boolean(),
  fault: z.boolean(),
  turns: count,
  /** Issued, and those of them that were not run. */
  calls: count,
  calls_not_run: count,
  calls_per_turn: z.number(),
  /** Generated tokens. */
  tokens: count,
  timing: z.looseObject({ seconds: z.number().optional() }).optional(),
})

export const tableRow = z.looseObject({
  name: z.string(),
  /** The field and its value that the row is limited to; an overall row has none. */
  by: z.looseObject({ field: z.string(), value: z.string() }).optional(),
  instances: count,
  /** Rollouts, and those of them that did not fail. One that failed or gave no answer counts as F 0. */
  n: count,
  scored: count,
  unanswered: count,
  f05_mean: z.number().nullable(),
  f05_median: z.number().nullable(),
  precision: z.number().nullable(),
  recall: z.number().nullable(),
  /** Share of rollouts with F of at least 0.8. */
  share_08: z.number().nullable(),
  /** Means over the rollouts that did not fail; `not_run` is a share of all calls. */
  turns: z.number().nullable(),
  calls: z.number().nullable(),
  calls_per_turn: z.number().nullable(),
  not_run: z.number().nullable(),
  tokens: z.number().nullable(),
  timing: z.looseObject({ seconds: z.number().nullable() }).optional(),
})

/** The second of two policies against the first, instance by instance. */
export const difference = z.looseObject({
  from: z.string(),
  to: z.string(),
  instances: count,
  f05: z.number(),
  low: z.number(),
  high: z.number(),
  level: z.number(),
  resamples: count,
  seed: z.string(),
  better: count,
  equal: count,
  worse: count,
})

export const table = z.looseObject({
  kind: z.literal('table'),
  v: z.literal(1),
  title: z.string(),
  gold_rules: z.string(),
  rows: z.array(tableRow),
  difference: difference.optional(),
})

/** One per stage, at the head of its output: where what follows comes from. */
export const run = z.looseObject({
  kind: z.literal('run'),
  v: z.literal(1),
  id: z.string(),
  stage: z.string(),
  command: z.string(),
  version: z.string(),
  options: z.record(z.string(), z.unknown()),
  seed: z.string(),
})
export const end = z.looseObject({
  kind: z.literal('end'),
  v: z.literal(1),
  run: z.string(),
  stage: z.string(),
  in: count,
  out: count,
  faults: count,
  ok: z.boolean(),
  /** sha256 of the stage's input lines. */
  digest: z.string(),
})
export const barrier = z.looseObject({
  kind: z.literal('barrier'),
  v: z.literal(1),
  step: count,
  version: count,
  groups: count,
  digest,
  replayed: z.boolean().optional(),
})
export const fault = z.looseObject({
  kind: z.literal('fault'),
  v: z.literal(1),
  stage: z.string(),
  code: z.string(),
  message: z.string(),
  /** Id of the record that failed. */
  of: z.string(),
  retry: z.boolean(),
})

export const schemas = { instance, trajectory, reads, rollout, step, score, table, run, end, barrier, fault } as const
export type Kind = keyof typeof schemas

export type Range = z.infer<typeof range>
export type Entity = z.infer<typeof entity>
export type Target = z.infer<typeof target>
export type Worktree = z.infer<typeof worktree>
export type Instance = z.infer<typeof instance>
export type PolicyIdentity = z.infer<typeof policyIdentity>
export type SamplingRecord = z.infer<typeof sampling>
export type CallStatus = z.infer<typeof callStatus>
export type Call = z.infer<typeof call>
export type Turn = z.infer<typeof turn>
export type Answer = z.infer<typeof answer>
export type Tokens = z.infer<typeof tokens>
export type Rollout = z.infer<typeof rollout>
export type Step = z.infer<typeof step>
export type Score = z.infer<typeof score>
export type Table = z.infer<typeof table>
export type TableRow = z.infer<typeof tableRow>
export type Difference = z.infer<typeof difference>
export type Run = z.infer<typeof run>
export type End = z.infer<typeof end>
export type Barrier = z.infer<typeof barrier>
export type Fault = z.infer<typeof fault>

export type RecordOf = {
  instance: Instance
  trajectory: z.infer<typeof trajectory>
  reads: z.infer<typeof reads>
  rollout: Rollout
  step: Step
  score: Score
  table: Table
  run: Run
  end: End
  barrier: Barrier
  fault: Fault
}
