import type { Foreign, Item, Known, Output } from '../record/item.js'
import type { Fault } from '../record/schema.js'
import { collectSteps, type StepRows } from './collect-steps.js'
import { createMeasure } from './evaluation.js'
import { type BuiltStep, type ReadyStep, trainLoop } from './loop.js'
import { memoryBudget } from './memory-budget.js'
import { settleOldLogprobs } from './old-logprobs.js'
import { policyBatch } from './policy-batch.js'
import { type Prepared, trainingRun } from './prepare.js'
import { decidingOptions } from './run-identity.js'
import type { Runtime } from './runtime.js'
import { createSchedule } from './schedule.js'
import { openSession, type Session } from './session.js'
import { optimizerOptions, type PolicyOptions, policyLoss } from './settings.js'
import { holdUpstream } from './upstream-options.js'

/**
 * `cg-train grpo`: policy-gradient steps on rewarded rollouts as they arrive (GRPO and its kin; formulas 1.4, 3). Yields `step` records.
 *
 * In a run directory each step makes the version that the next rollouts are sampled from (stream contract, "On-policy").
 */
export function trainPolicy(input: AsyncIterable<Item>, options: PolicyOptions, runtime: Runtime): AsyncGenerator<Output> {
  return trainingRun(options, runtime, (prepared, begun) => policySteps(input, options, runtime, prepared, begun))
}

async function* policySteps(
  input: AsyncIterable<Item>,
  stated: PolicyOptions,
  runtime: Runtime,
  prepared: Prepared,
  begun: (session: Session) => void,
): AsyncGenerator<Output> {
  const { engine, model, held, maxRowsPerPass } = prepared
  const klRef = stated.klRef ?? (stated.initAdapter === undefined ? 'base' : 'start')
  const options = { ...stated, klRef }
  const schedule = createSchedule(options, options.steps, '--steps')
  const { initAdapterSha256, modelSha256 } = prepared
  const { evalFile } = options
  const measure = evalFile === undefined ? undefined : await createMeasure(evalFile, options, prepared, runtime)
  const session = await openSession({
    engine,
    model,
    product: prepared.product,
    held,
    wish: {
      method: 'grpo',
      model_sha256: modelSha256,
      prompts_per_step: options.promptsPerStep,
      samples_per_prompt: options.samplesPerPrompt,
      lag: options.lag,
      steps: options.steps ?? null,
      seed: runtime.seed,
      options: decidingOptions('grpo', options, { initAdapterSha256, logprobKind: model.info.logprobKind, maxRowsPerPass }),
    },
    initAdapter: options.initAdapter,
    optimizer: optimizerOptions(options),
    klReference: options.kl > 0 ? klRef : undefined,
    keep: options.keep,
  })
  begun(session)
  runtime.say(
    `run ${session.runId.slice(0, 12)}: ${options.promptsPerStep} prompts × ${options.samplesPerPrompt} rollouts a step, ` +
      `${session.trainer.trained.parameters} parameters on ${model.info.device}${session.committed.length ? `, ${session.committed.length} steps done` : ''}`,
  )

  let endsByItself = false
  const steps = readySteps(collectPlan(input, options, session, runtime, held), session, prepared, runtime, onPolicy => {
    endsByItself = onPolicy
  })
  yield* trainLoop(
    steps,
    session,
    {
      loss: policyLoss(options),
      schedule,
      clip: options.clip,
      maxRowsPerPass,
      memoryBudget: memoryBudget(options.memory),
      steps: options.steps,
      drain: () => endsByItself,
      evaluation: measure && { every: options.evalEvery!, measure: dir => measure(session, dir) },
      heartbeat: held?.heartbeat,
      readAhead: options.lag + 1,
    },
    runtime,
  )
}

function collectPlan(
  input: AsyncIterable<Item>,
  options: PolicyOptions,
  session: Session,
  runtime: Runtime,
  held: Prepared['held'],
): AsyncGenerator<StepRows | Foreign> {
  return collectSteps(input, {
    promptsPerStep: options.promptsPerStep,
    promptsStated: runtime.given('promptsPerStep') ? options.promptsPerStep : undefined,
    samplesStated: runtime.given('samplesPerPrompt') ? options.samplesPerPrompt : undefined,
    samplesPerPrompt: options.samplesPerPrompt,
    lag: options.lag,
    runId: session.runId,
    allowPartial: options.allowPartial,
    cleanEnd: runtime.cleanEnd,
    aborted: () => runtime.signal.aborted,
    warn: runtime.warn,
    onBarrier: () => held?.heartbeat.saw(),
  })
}

async function* readySteps(
  collected: AsyncIterable<StepRows | Foreign>,
  session: Session,
  { held, limits }: Prepared,
  runtime: Runtime,
  seen: (onPolicy: boolean) => void,
): AsyncGenerator<ReadyStep | Foreign> {
  let first = true
  for await (const found of collected) {
    if (found.kind === 'foreign') {
      yield found
      continue
    }
    if (first && held) holdUpstream(held.dir, runtime.upstream())
    first = false
    seen(found.onPolicy)
    yield {
      kind: 'step',
      step: found.step,
      digest: found.digest,
      rows: found.groups.reduce((sum, group) => sum + group.rollouts.length, 0),
      replayed: found.replayed,
      build: () => build(found, session, limits, runtime),
    }
  }
}

async function build(rows: StepRows, session: Session, limits: Prepared['limits'], runtime: Runtime): Promise<BuiltStep> {
  const faults: Fault[] = []
  const batch = policyBatch(rows, limits, (error, item: Known<'rollout'>) => faults.push(runtime.fault(error, item)))
  const rescored = await settleOldLogprobs(batch, session)
  if (batch.facts.zero_variance === rows.groups.length && rows.groups.length > 0)
    runtime.say(`step ${rows.step}: in every group all rewards are equal: nothing to learn from; sample more, or easier instances`)
  return {
    groups: batch.groups,
    denominators: batch.denominators,
    facts: { ...batch.facts, groups: rows.groups.length, ...(rescored > 0 ? { rescored } : {}) },
    compared: batch.groups.length > 0,
    faults,
  }
}
