import { z } from 'zod'
import { count } from './schema-instance.js'

/** What is measured: steps of training, scores, tables. */

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
