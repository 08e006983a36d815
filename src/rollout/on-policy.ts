import { join } from 'node:path'
import type { NativeModel } from '../policy/native.js'
import type { Policy } from '../policy/policy.js'
import { FatalError, UsageError } from '../record/fault.js'
import type { Item, Known, Output } from '../record/item.js'
import { type RunFile, runFile, versionName } from '../record/run-directory.js'
import type { Barrier } from '../record/schema.js'
import type { StageContext } from '../record/stage.js'
import { type Clock, committedVersion, newestVersion, readJson, realClock, waitForRun } from './run-reader.js'
import { type SampledGroup, type Sampler, sampleGroup } from './sample-group.js'
import { type StepPlan, stepPlans } from './schedule.js'
import type { RolloutSettings } from './settings.js'
import { type Patience, type TrainerWatch, usualPatience, watchTrainer } from './trainer-watch.js'

export type OnPolicyOptions = {
  dir: string
  /** How long the trainer may take to show itself. */
  waitMs: number
  dropLast: boolean
  model: Pick<NativeModel, 'modelSha256' | 'policy'>
  /** Name of the model in the policies' names. */
  modelName: string
  sampler: Omit<Sampler, 'policy' | 'samples' | 'table' | 'settings'>
  settings: RolloutSettings
  /** What the command line says, where it says something: it must be what the trainer says. */
  stated: { promptsPerStep?: number | undefined; samples?: number | undefined; seed?: string | undefined }
  clock?: Clock
  patience?: Patience
}

export type OnPolicyContext = StageContext & {
  warn(message: string): void
  detail(message: string): void
  progress(done: number, total: number | undefined, words?: string): void
  cleanEnd(): boolean
  count: { cached: number }
}

/**
 * Samples for a trainer that publishes its versions in `dir` (stream contract, "On-policy"): step k with exactly version max(0, k − lag), a barrier after each
 * step. Steps that are committed already are only named by their barriers.
 *
 * Reads all instances first: passes repeat them. Throws UsageError for what contradicts run.json, FatalError when the trainer is not there, gone or failed, or
 * when the instances ended early.
 */
export async function* onPolicy(input: AsyncIterable<Item>, options: OnPolicyOptions, context: OnPolicyContext): AsyncGenerator<Output> {
  const { dir, dropLast, clock = realClock, patience = usualPatience } = options
  const items: Known<'instance'>[] = []
  for await (const item of input) {
    if (item.kind === 'instance') items.push(item)
    else yield item
  }
  if (context.signal.aborted) return
  if (!context.cleanEnd())
    throw new FatalError('E_EARLY_END', 'the instances ended early: other instances would make another run; run the pipe again')
  const trainer = watchTrainer(dir, { clock, patience, absentMs: options.waitMs, warn: context.warn })
  const run = await waitForRun(dir, trainer.look, clock, context.signal)
  if (!run) return
  agree(run, options)
  if (items.length === 0) context.warn('no instances: nothing to sample')

  const committed = await newestVersion(dir)
  const versions = policies(options, run)
  const used = new Set<Known<'instance'>>()
  const fresh = new Set<Known<'instance'>>()
  const schedule = { seed: run.seed, promptsPerStep: run.prompts_per_step, steps: run.steps, dropLast }
  for (const plan of stepPlans(items, schedule)) {
    const version = Math.max(0, plan.step - run.lag)
    const replayed = plan.step < committed
    for (const { item } of plan.prompts) used.add(item)
    if (!replayed) {
      if (!(await arrived(dir, version, run, trainer, clock, context.signal))) return
      const policy = await versions.open(version)
      for await (const { group, item } of sampleStep(plan, policy, run, options, context.signal)) {
        if (!group.cached) fresh.add(item)
        yield* group.rollouts
        for (const fault of group.faults) yield context.fault(fault, item)
      }
      if (context.signal.aborted) return
    }
    yield barrier(plan, version, replayed)
    trainer.wrote(plan.step)
    if (plan.step + 1 === schedule.steps) schedule.steps = await settledSteps(run, trainer, options, context.signal)
    context.progress(plan.step + 1, schedule.steps ?? undefined, `step ${plan.step} of version ${version}`)
  }
  // Nothing had to be sampled: the whole input is done, what no step has come to included.
  context.count.cached = fresh.size === 0 ? items.length : used.size - fresh.size
  await versions.close()
}

/** The groups of a step, sampled together, given out in order. */
async function* sampleStep(
  plan: StepPlan,
  policy: Policy,
  run: RunFile,
  { sampler, settings }: OnPolicyOptions,
  signal: AbortSignal,
): AsyncGenerator<{ group: SampledGroup; item: Known<'instance'> }> {
  const stop = new AbortController()
  const onAbort = () => stop.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const whole: Sampler = {
    ...sampler,
    policy,
    samples: run.samples_per_prompt,
    table: 'on-policy',
    settings: { ...settings, seed: run.seed },
  }
  const running = plan.prompts.map(({ item, pass }, index) => sampleGroup(whole, item.record, { pass, index }, stop.signal))
  for (const group of running) group.catch(() => {}) // a failure is met in order, below
  try {
    for (const [index, { item }] of plan.prompts.entries()) {
      const group = await running[index]!.catch(error => {
        if (!signal.aborted) throw error
        return undefined
      })
      if (!group) return
      yield { group, item }
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    stop.abort()
  }
}

/**
 * The steps of the run as the trainer of this life has them: it may have been told more than run.json said when it was read. Waits until the trainer has
 * opened the run; where none comes, the run is as it stands.
 */
async function settledSteps(run: RunFile, trainer: TrainerWatch, { dir, waitMs, clock = realClock }: OnPolicyOptions, signal: AbortSignal) {
  for (const began = clock.now(); !trainer.opened() && clock.now() - began < waitMs && !signal.aborted; ) {
    await trainer.look().catch(nobodyCame)
    await clock.sleep(25, signal)
  }
  return ((await readJson(join(dir, 'run.json'), runFile)) ?? run).steps
}

function nobodyCame(error: unknown): void {
  if (!(error instanceof FatalError) || error.code !== 'E_NO_RUN') throw error
}

/** Waits until a version is committed; false after an abort. */
async function arrived(
  dir: string,
  version: number,
  run: RunFile,
  trainer: TrainerWatch,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  let looked = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    if (await committedVersion(dir, version, run)) return true
    if (clock.now() - looked >= 500) {
      await trainer.look()
      looked = clock.now()
      if (await committedVersion(dir, version, run)) return true // committed just before the trainer said that it is done
    }
    await clock.sleep(25, signal)
  }
  return false
}

/** Policies by version; older ones are closed as newer ones come. */
function policies({ dir, model, modelName }: OnPolicyOptions, run: RunFile) {
  let current: { version: number; policy: Policy } | undefined
  return {
    async open(version: number): Promise<Policy> {
      if (current?.version === version) return current.policy
      const found = await committedVersion(dir, version, run)
      if (!found) throw new FatalError('E_RUN_DIR', `${dir}: ${versionName(version)} was removed while it was needed`)
      await current?.policy.close()
      const provenance = { run_id: run.run_id, version, adapter_sha256: found.policy.sha256 }
      current = { version, policy: await model.policy(found.path, `${modelName}@${versionName(version)}`, provenance) }
      return current.policy
    },
    async close() {
      await current?.policy.close()
    },
  }
}

function barrier({ step, prompts, digest }: StepPlan, version: number, replayed: boolean): Barrier {
  return { kind: 'barrier', v: 1, step, version, groups: prompts.length, digest, ...(replayed ? { replayed: true } : {}) }
}

/** What was said on the command line must be what the trainer decided. */
function agree(run: RunFile, { dir, model, stated }: OnPolicyOptions): void {
  const differs = (flag: string, here: unknown, there: unknown) =>
    new UsageError(`${flag} ${here} contradicts ${dir}/run.json (${there}): leave it out, the trainer decides it`)
  if (stated.promptsPerStep !== undefined && stated.promptsPerStep !== run.prompts_per_step)
    throw differs('--prompts-per-step', stated.promptsPerStep, run.prompts_per_step)
  if (stated.samples !== undefined && stated.samples !== run.samples_per_prompt)
    throw differs('--samples-per-prompt', stated.samples, run.samples_per_prompt)
  if (stated.seed !== undefined && stated.seed !== run.seed) throw differs('--seed', stated.seed, run.seed)
  if (model.modelSha256 !== run.model_sha256)
    throw new UsageError(
      `--policy: the model's digest is ${model.modelSha256.slice(0, 12)}…, the trainer's ${run.model_sha256.slice(0, 12)}…: give both the same model`,
    )
}
