import { canonical, sha256 } from '../record/canonical.js'
import { FatalError, RecordFault } from '../record/fault.js'
import type { Item, Output } from '../record/item.js'
import { createMeasure } from './evaluation.js'
import { type ReadyStep, trainLoop } from './loop.js'
import { memoryBudget } from './memory-budget.js'
import { type Prepared, trainingRun } from './prepare.js'
import { decidingOptions } from './run-identity.js'
import type { Runtime } from './runtime.js'
import { createSchedule } from './schedule.js'
import { openSession, type Session } from './session.js'
import { optimizerOptions, type WeightedOptions } from './settings.js'
import { batches, createSpool, type Spool } from './spool.js'
import { createTokenise, type Tokenise } from './tokenise.js'
import { type RowPlan, weightedBatch, weightedRow } from './weighted-batch.js'

export type WeightedMethod = 'sft' | 'awr'

/**
 * `cg-train sft` and `cg-train awr`: maximum likelihood of the turns of rollouts, each turn weighted with 1 or with its record's weight (A2Agent, section 4;
 * formulas 2.4). Reads the whole input first, shuffles every pass over it, yields `step` records.
 */
export function trainWeighted(
  method: WeightedMethod,
  input: AsyncIterable<Item>,
  options: WeightedOptions & { prompt?: 'full' | 'brief' | undefined },
  runtime: Runtime,
): AsyncGenerator<Output> {
  return trainingRun(options, runtime, async function* (prepared, begun) {
    const spool = createSpool()
    try {
      let cut = 0
      const give = createTokenise(prepared.modelDir, options.prompt)
      const tokenise: Tokenise = record => {
        const tokens = give(record)
        if (tokens.cut) cut++
        return tokens
      }
      const { minReward, temperature, contextWeight = 0 } = options
      const plan = { limits: prepared.limits, weighted: method === 'awr', minReward, temperature, contextWeight, tokenise }
      yield* fill(spool, input, plan, options, runtime)
      if (cut > 0) runtime.say(`${cut} rollouts are cut where the model's context ends`)
      if (runtime.signal.aborted) return
      yield* weightedSteps(method, spool, options, runtime, prepared, begun)
    } finally {
      spool.close()
    }
  })
}

/** Reads all rollouts into the spool; other lines, and faults of rollouts that cannot be used, pass on. */
async function* fill(
  spool: Spool,
  input: AsyncIterable<Item>,
  plan: RowPlan,
  options: WeightedOptions,
  runtime: Runtime,
): AsyncGenerator<Output> {
  let left = 0
  for await (const item of input) {
    if (item.kind === 'foreign') yield item
    if (item.kind !== 'rollout') continue
    try {
      const row = await weightedRow(item, plan)
      if (row) spool.add(item.record.group.id, row)
      else left++
    } catch (error) {
      if (!(error instanceof RecordFault)) throw error
      error.origin ??= item.origin
      yield runtime.fault(error, item)
    }
  }
  if (runtime.signal.aborted) return
  if (!runtime.cleanEnd() && !options.allowPartial)
    throw new FatalError(
      'E_EARLY_END',
      'the input ended early, and nothing was trained: run the same command again, or take what there is with --allow-partial',
    )
  if (left > 0) runtime.say(`${left} rollouts left out: failed, empty, or below --min-reward`)
}

async function* weightedSteps(
  method: WeightedMethod,
  spool: Spool,
  options: WeightedOptions & { prompt?: 'full' | 'brief' | undefined },
  runtime: Runtime,
  prepared: Prepared,
  begun: (session: Session) => void,
): AsyncGenerator<Output> {
  const { engine, model, held, maxRowsPerPass, initAdapterSha256 } = prepared
  const rows = spool.names.length
  if (rows === 0) return
  const passes = options.epochs ?? (options.steps === undefined ? 1 : Number.POSITIVE_INFINITY)
  const whole = Math.ceil((rows * passes) / options.batchSize)
  const total = Math.min(whole, options.steps ?? whole)
  const schedule = createSchedule(options, total, '--steps or --epochs')
  const { evalFile } = options
  const measure = evalFile === undefined ? undefined : await createMeasure(evalFile, options, prepared, runtime)
  const session = await openSession({
    engine,
    model,
    product: prepared.product,
    held,
    wish: {
      method,
      model_sha256: prepared.modelSha256,
      prompts_per_step: options.batchSize,
      samples_per_prompt: 1,
      lag: 0,
      steps: total,
      seed: runtime.seed,
      options: decidingOptions(method, options, { initAdapterSha256, logprobKind: model.info.logprobKind, maxRowsPerPass }),
    },
    initAdapter: options.initAdapter,
    optimizer: optimizerOptions(options),
    klReference: undefined,
    keep: options.keep,
  })
  begun(session)
  runtime.say(
    `run ${session.runId.slice(0, 12)}: ${rows} rollouts, ${total} steps of ${options.batchSize}, ${session.trainer.trained.parameters} parameters on ${model.info.device}` +
      (session.committed.length ? `, ${session.committed.length} steps done` : ''),
  )
  yield* trainLoop(
    readySteps(spool, runtime.seed, passes, options.batchSize, total),
    session,
    {
      loss: { kind: 'weighted' },
      schedule,
      clip: options.clip,
      maxRowsPerPass,
      memoryBudget: memoryBudget(options.memory),
      steps: total,
      drain: () => false,
      evaluation: measure && { every: options.evalEvery!, measure: dir => measure(session, dir) },
      heartbeat: held?.heartbeat,
      readAhead: 0,
    },
    runtime,
  )
}

async function* readySteps(spool: Spool, seed: string, passes: number, size: number, total: number): AsyncGenerator<ReadyStep> {
  let step = 0
  for (const indices of batches(spool.names, seed, passes, size)) {
    if (step === total) return
    yield {
      kind: 'step',
      step: step++,
      digest: sha256(canonical(indices.map(index => spool.names[index]!.key))),
      rows: indices.length,
      replayed: false,
      build: async () => weightedBatch(spool, indices),
    }
  }
}
