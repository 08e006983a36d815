import type { Engine } from '../engine/types.js'
import { UsageError } from '../record/fault.js'

export type ScheduleName = 'constant' | 'linear' | 'cosine'

/** Learning rates of a run: the peak, the steps it rises over and, where the shape needs it, how many steps there are. */
export type Schedule = { name: ScheduleName; lr: number; warmup: number; total: number | undefined }

/** Does the learning rate of a step depend on how many steps there will be? */
export function needsTotal({ schedule, warmup }: { schedule: ScheduleName; warmup: number }): boolean {
  return schedule !== 'constant' || (warmup > 0 && warmup < 1)
}

/**
 * The schedule that the options ask for; a warm-up below 1 is a share of the steps, rounded up.
 *
 * Throws UsageError when the shape depends on the number of steps and nobody knows it: a stream has no length.
 */
export function createSchedule(
  options: { schedule: ScheduleName; lr: number; warmup: number },
  total: number | undefined,
  how: string,
): Schedule {
  const { schedule, lr, warmup } = options
  if (needsTotal(options) && total === undefined) {
    const what = schedule === 'constant' ? `--warmup ${warmup} is a share of the steps` : `--schedule ${schedule} ends with the last step`
    throw new UsageError(`${what}, and a stream has no length: give ${how}`)
  }
  if (warmup >= 1 && !Number.isInteger(warmup))
    throw new UsageError(`--warmup ${warmup}: below 1 a share of the steps, else a whole number of them`)
  const steps = warmup < 1 ? Math.ceil(warmup * (total ?? 0)) : warmup
  if (total !== undefined && steps > total) throw new UsageError(`--warmup ${warmup} is longer than the ${total} steps of the run`)
  return { name: schedule, lr, warmup: steps, total }
}

/** Learning rate of a step, from 0 (transformers' schedules: with a warm-up, or a linear or cosine end, step 0 or the last has lr 0 or nearly). */
export function learningRate(engine: Pick<Engine, 'learningRate'>, { name, lr, warmup, total }: Schedule, step: number): number {
  return engine.learningRate(name, lr, step, warmup, total ?? Number.MAX_SAFE_INTEGER)
}
