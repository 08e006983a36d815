import type { Kind, RecordOf } from './schema.js'

/** Where a line came from, for messages: `FILE:LINE` (`-` is stdin). */
export type Origin = { file: string; line: number }

/** A checked record of a kind that the stage knows. */
export type Known<K extends Kind = Kind> = { [P in K]: { kind: P; record: RecordOf[P]; origin: Origin } }[K]

/** A line that the stage does not deal with: it passes as the bytes it was (no newline), in place. */
export type Foreign = { kind: 'foreign'; bytes: Uint8Array; origin: Origin }

/** What a stage reads and what it may write. */
export type Item<K extends Kind = Kind> = Known<K> | Foreign

/** What a stage yields: a new record, or an item to pass on as it is. */
export type Output = RecordOf[Kind] | Item

/** A line of output that is not a record: text for people, or rows of another tool's format. */
export function textLine(text: string): Foreign {
  return { kind: 'foreign', bytes: Buffer.from(text), origin: { file: 'output', line: 0 } }
}

/** Tells an item from a bare record. */
export function isItem(output: Output): output is Item {
  if (output.kind === 'foreign') return true
  const { origin, record } = output as { origin?: Partial<Origin>; record?: unknown }
  return typeof record === 'object' && record !== null && typeof origin?.file === 'string' && typeof origin.line === 'number'
}
