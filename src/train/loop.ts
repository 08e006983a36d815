import type { LossOptions, StepDenominators, StepStats, TrainGroup } from '../engine/types.js'
import { FatalError } from '../record/fault.js'
import type { Foreign, Output } from '../record/item.js'
import type { Fault, Step } from '../record/schema.js'
import { ahead } from './ahead.js'
import type { Figure } from './best.js'
import type { Heartbeat } from './heartbeat.js'
import type { Runtime } from './runtime.js'
import { learningRate, type Schedule } from './schedule.js'
import type { Session } from './session.js'
import { progressWords, stepRecord } from './step-record.js'

/** A step whose data is there. */
export type ReadyStep = {
  kind: 'step'
  /** From 0. */
  step: number
  digest: string
  /** Rollouts that came for it. */
  rows: number
  /** Its data did not come: an earlier life of the run must have trained it. */
  replayed: boolean
  build(): Promise<BuiltStep>
}

export type BuiltStep = {
  groups: TrainGroup[]
  denominators: StepDenominators
  /** For the step's record. */
  facts: object
  /** Sequences bring a sampler's log-probs, to be compared with the trainer's own. */
  compared: boolean
  faults: Fault[]
}

export type LoopPlan = {
  loss: LossOptions
  schedule: Schedule
  clip: number
  maxRowsPerPass: number
  memoryBudget: number
  /** The run ends after this many steps. */
  steps: number | undefined
  /** After the last step the input is read to its end: the stage before ends by itself. */
  drain(): boolean
  evaluation: { every: number; measure(versionDir: string): Promise<Figure> } | undefined
  heartbeat: Heartbeat | undefined
  /** Steps that are read while one trains. */
  readAhead: number
}

/** NaN or infinity in this many steps in a row ends the run. */
const patience = 3

/**
 * Trains step by step and yields their `step` records, those of an earlier life of the run first; each is yielded when its version stands.
 *
 * Steps that are committed already are only compared: FatalError E_DATA for one whose data is not what it was made from. A step with NaN or infinity is
 * skipped and said; FatalError E_NAN after three in a row. When the signal aborts, the step at hand is finished.
 */
export async function* trainLoop(
  steps: AsyncIterable<ReadyStep | Foreign>,
  session: Session,
  plan: LoopPlan,
  runtime: Runtime,
): AsyncGenerator<Output> {
  const { heartbeat } = plan
  const committed = session.committed
  yield* committed
  let done = committed.length
  let rows = session.committedRows
  let skipped = trailingSkips(committed)
  let idleSince = performance.now()
  let finished = false
  heartbeat?.state('waiting')

  for await (const next of ahead(steps, plan.readAhead)) {
    if (next.kind === 'foreign') {
      yield next
      continue
    }
    if (finished) continue
    if (next.step < committed.length) {
      compare(next, committed[next.step]!)
      // several passes over a file read its rows once
      runtime.count.cached = Math.min(runtime.count.in, runtime.count.cached + next.rows)
    } else {
      if (next.replayed)
        throw new FatalError(
          'E_DATA',
          `step ${next.step} is said to be done, and this run has ${done} steps: start the whole pipe again with the same directory`,
        )
      rows += next.rows
      const waited = seconds(idleSince)
      heartbeat?.state('training')
      const { record, faults, stats } = await trainOne(next, session, plan, rows, waited)
      yield* faults
      done++
      runtime.progress(done, plan.steps, progressWords(record))
      yield record
      skipped = stats.skipped ? skipped + 1 : 0
      if (stats.skipped) runtime.warn(`step ${next.step}: NaN or infinity in its loss or gradient: skipped, nothing was changed`)
      if (skipped >= patience) throw notANumber()
      if (runtime.signal.aborted) return
      heartbeat?.state('waiting')
      idleSince = performance.now()
    }
    if (plan.steps !== undefined && next.step + 1 >= plan.steps) {
      finished = true
      if (!plan.drain()) break
    }
  }
  if (plan.steps !== undefined && done < plan.steps && !runtime.signal.aborted)
    runtime.warn(`the input ended after ${done} of ${plan.steps} steps`)
}

async function trainOne(
  next: ReadyStep,
  session: Session,
  plan: LoopPlan,
  rows: number,
  waited: number,
): Promise<{ record: Step; faults: Fault[]; stats: StepStats }> {
  const began = performance.now()
  const { groups, denominators, facts, compared, faults } = await next.build()
  const lr = learningRate(session.engine, plan.schedule, next.step)
  const stats = await session.trainer.train({
    groups,
    loss: plan.loss,
    denominators,
    klAdapter: session.reference,
    lr,
    clip: plan.clip,
    maxRowsPerPass: plan.maxRowsPerPass,
    memoryBudget: plan.memoryBudget,
  })
  const trained = seconds(began)
  const { evaluation } = plan
  const due = evaluation && ((next.step + 1) % evaluation.every === 0 || next.step + 1 === plan.steps)
  const record = await session.commit(next.step + 1, { steps: next.step + 1, rows, digest: next.digest }, async versionDir => {
    const evalBegan = performance.now()
    const figure = due ? await evaluation.measure(versionDir) : undefined
    const timing = { train_s: trained, wait_s: waited, ...(due ? { eval_s: seconds(evalBegan) } : {}) }
    return stepRecord({ step: next.step, stats, lr, digest: next.digest, facts, compared, figure, timing })
  })
  return { record, faults, stats }
}

function compare(next: ReadyStep, record: Step): void {
  if (record.digest === next.digest) return
  throw new FatalError(
    'E_DATA',
    `step ${next.step} was made from other data (${String(record.digest).slice(0, 12)}, now ${next.digest.slice(0, 12)}): give the same input and options, or another directory`,
  )
}

function trailingSkips(steps: readonly Step[]): number {
  let count = 0
  for (let i = steps.length - 1; i >= 0 && steps[i]!.skipped; i--) count++
  return count
}

function notANumber(): FatalError {
  return new FatalError(
    'E_NAN',
    `NaN or infinity in ${patience} steps in a row: lower --lr, check the rewards, or go back to an earlier version`,
  )
}

function seconds(since: number): number {
  return Math.round(performance.now() - since) / 1000
}
