import { z } from 'zod'
import { type difference, score, step, table, type tableRow } from './schema-figures.js'
import { count, digest, type entity, instance, path, type range, type target, task, type worktree } from './schema-instance.js'
import {
  type answer,
  type call,
  type callStatus,
  type policyIdentity,
  rollout,
  type sampling,
  type tokens,
  type turn,
} from './schema-rollout.js'

export * from './schema-figures.js'
export { entity, instance, range, target, worktree } from './schema-instance.js'
export * from './schema-rollout.js'

/**
 * The wire format: one zod schema per record kind (cg-record(5)).
 *
 * Schemas are loose: a field that cg does not know passes through untouched. `kind` and `v` say what a record is; a row without `kind` that has SWE-bench
 * fields is an instance. Paths are repository-relative POSIX, numbers finite, 64-bit ids strings. Everything that a clock measured stands under `timing`.
 */

export const reads = z.looseObject({
  kind: z.literal('reads'),
  v: z.literal(1),
  ...task,
  trajectory_id: z.string(),
  reads: z.array(z.looseObject({ path })),
})
export const trajectory = z.looseObject({ kind: z.literal('trajectory').optional(), v: z.literal(1).optional(), instance_id: z.string() })

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
