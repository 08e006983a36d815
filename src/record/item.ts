import type { Kind, RecordOf } from './schema.js'

/** Where a line came from, for messages: `FILE:LINE` (`-` is stdin). */
export type Origin = { file: string; line: number }

/** A checked record of a kind that the stage knows. */
export type Known<K extends Kind = Kind> = { [P in K]: { kind: P; record: RecordOf[P]; origin: Origin } }[K]

/** A line that the stage does not deal with: it passes as the bytes it was, in place. */
export type Foreign = { kind: 'foreign'; bytes: Uint8Array; origin: Origin }

/** What a stage reads and what it may write. */
export type Item<K extends Kind = Kind> = Known<K> | Foreign

/** What a stage yields: a new record, or an item to pass on as it is. */
export type Output = RecordOf[Kind] | Item
