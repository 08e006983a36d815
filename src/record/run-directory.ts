import { z } from 'zod'

/**
 * The files of a run directory (`cg-train --publish DIR`, `cg-rollout --on-policy DIR`): written by the trainer alone, each by rename, so a reader finds all
 * of a file or none of it.
 *
 *     DIR/run.json        what the run is; there before anything else
 *     DIR/trainer.json    the trainer's heartbeat, rewritten every 5 s
 *     DIR/v000124/        policy version 124: a PEFT adapter directory (with --full a checkpoint) with policy.json, step.json and optimizer.safetensors beside it
 *     DIR/steps.ndjson    every committed `step` record, in order
 */

/** Of a version: what training goes on with (m, v, step), no part of what it has made. */
export const optimizerFile = 'optimizer.safetensors'

const count = z.number().int().nonnegative()
const digest = z.string().regex(/^[0-9a-f]{64}$/)

export const runFile = z.looseObject({
  /** sha256 of canonical JSON {model_sha256, start_adapter_sha256, options, seed}: no clock, host or path. */
  run_id: digest,
  method: z.enum(['sft', 'awr', 'grpo']),
  /** `modelDigest` of the base model; of one that began with random weights, what is said of its other files. */
  model_sha256: digest,
  /** `adapterDigest` of version 0, or `modelDigest` where whole models are trained. */
  start_adapter_sha256: digest,
  prompts_per_step: z.number().int().positive(),
  samples_per_prompt: z.number().int().positive(),
  /** Step k samples version max(0, k − lag). */
  lag: count,
  /** The rollout stage ends after this many barriers; null: when its input ends. */
  steps: z.number().int().positive().nullable(),
  seed: z.string(),
  /** Options that decide the result; one that differs refuses to go on. */
  options: z.record(z.string(), z.unknown()),
})

export const policyFile = z.looseObject({
  run_id: digest,
  version: count,
  /** `adapterDigest` of the version's adapter, or `modelDigest` of its model. */
  sha256: digest,
})

export const trainerState = z.enum(['starting', 'waiting', 'training', 'done', 'failed'])

export const trainerFile = z.looseObject({
  pid: z.number().int().positive(),
  host: z.string(),
  /** ISO 8601; for people. Readers never compare clocks. */
  start: z.string(),
  state: trainerState,
  /** Barriers read so far: the last one was of step `seen` − 1. */
  seen: count,
  /** Counts up with every rewriting. */
  beat: count,
})

export type RunFile = z.infer<typeof runFile>
export type PolicyFile = z.infer<typeof policyFile>
export type TrainerFile = z.infer<typeof trainerFile>
export type TrainerState = z.infer<typeof trainerState>

/** `v000124`. */
export function versionName(version: number): string {
  return `v${String(version).padStart(6, '0')}`
}

/** The version that a name stands for; undefined for other files (unfinished versions have other names). */
export function versionOf(name: string): number | undefined {
  return /^v\d{6,}$/.test(name) ? Number(name.slice(1)) : undefined
}
