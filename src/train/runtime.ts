import type { RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import type { Fault, Run } from '../record/schema.js'

/** What training needs of its command; a command's Context has it. */
export type Runtime = {
  seed: string
  /** Aborted by a signal, or by a reader of the output that went away: finish the step, then stop. */
  signal: AbortSignal
  say(message: string): void
  warn(message: string): void
  progress(done: number, total: number | undefined, words?: string): void
  count: { in: number; cached: number }
  /** The `fault` record that stands for a rollout that cannot be used; throws when the command must end instead. */
  fault(error: RecordFault, of: Known): Fault
  /** Did every upstream stage end well? Known at the end of the input. */
  cleanEnd(): boolean
  upstream(): readonly Run[]
  /** Was this option given? By its name in the table. */
  given(option: string): boolean
}
