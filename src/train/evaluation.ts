import type { TrainGroup } from '../engine/types.js'
import { FatalError, RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import { readRecords } from '../record/read.js'
import type { Figure } from './best.js'
import { denominators } from './denominators.js'
import { evaluateInstances } from './eval-pipe.js'
import type { Prepared } from './prepare.js'
import type { Runtime } from './runtime.js'
import type { Session } from './session.js'
import type { CommonOptions } from './settings.js'
import { createTokenise } from './tokenise.js'
import { type RowPlan, weightedRow } from './weighted-batch.js'

/** Measures the version in training; `versionDir` is where its files lie. */
export type Measure = (session: Session, versionDir: string) => Promise<Figure>

/**
 * Makes the measure of `--eval-file`, which is read and checked now, before anything is trained: rollouts give their mean loss, instances a mean F0.5 of
 * rollouts that are sampled on them.
 *
 * Throws FatalError E_EVAL for a file with neither or with both, and for instances without target or worktree.
 */
export async function createMeasure(
  file: string,
  options: Pick<CommonOptions, 'evalSamples' | 'threads' | 'device' | 'dtype'>,
  { modelDir, product, limits, maxRowsPerPass }: Pick<Prepared, 'modelDir' | 'product' | 'limits' | 'maxRowsPerPass'>,
  { seed, upstream }: Pick<Runtime, 'seed' | 'upstream'>,
): Promise<Measure> {
  const rows: RowPlan = {
    limits,
    weighted: false,
    minReward: undefined,
    temperature: 1,
    contextWeight: 0,
    tokenise: createTokenise(modelDir, undefined),
  }
  const groups: TrainGroup[] = []
  let instances = 0
  for await (const item of readRecords(file, ['rollout', 'instance'])) {
    if (item.kind === 'instance') instances += checkInstance(item, file)
    else if (item.kind === 'rollout') {
      const sequence = await heldOut(item, rows)
      if (sequence) groups.push({ index: groups.length, sequences: [sequence] })
    }
  }
  if (instances > 0 && groups.length > 0)
    throw new FatalError('E_EVAL', `${file} has instances and rollouts: a figure is of one or the other; split the file`)
  if (instances > 0) {
    const plan = {
      file,
      policy: product.policy,
      samples: options.evalSamples,
      threads: options.threads,
      device: options.device,
      dtype: options.dtype,
      seed,
    }
    return (_, versionDir) => evaluateInstances(plan, versionDir, upstream())
  }
  if (groups.length === 0) throw new FatalError('E_EVAL', `${file} has neither instances nor rollouts to learn from: nothing to measure on`)

  return async ({ trainer }) => {
    const { loss } = await trainer.evaluate({
      groups,
      loss: { kind: 'weighted' },
      denominators: denominators(groups.length, groups),
      maxRowsPerPass,
    })
    return { name: 'loss', value: loss, n: groups.length }
  }
}

function checkInstance(item: Known<'instance'>, file: string): 1 {
  const { instance_id, target, worktree } = item.record
  const lacks =
    target === undefined
      ? 'target: pipe it through cg-mine gold'
      : worktree === undefined
        ? 'worktree: pipe it through cg-worktree'
        : undefined
  if (lacks) throw new FatalError('E_EVAL', `${file}:${item.origin.line}: instance ${instance_id} has no ${lacks} first`)
  return 1
}

async function heldOut(item: Known<'rollout'>, plan: RowPlan) {
  try {
    const row = await weightedRow(item, plan)
    return row && { ids: Int32Array.from(row.ids), spans: Int32Array.from(row.spans), temperature: row.temperature }
  } catch (error) {
    if (error instanceof RecordFault) error.origin ??= item.origin
    throw error
  }
}
