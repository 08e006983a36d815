import { randomUUID } from 'node:crypto'
import ndjson from 'ndjson'
import { RecordFault } from './fault.js'

/**
 * Makes the function that turns a record into its line, line feed included (the `ndjson` package does it).
 *
 * BigInts are written with all their digits. Throws RecordFault E_NUMBER for a number that JSON cannot say, with its path, and E_DEPTH for a record nested so
 * deeply that it cannot be written; the next record can still be written after either.
 */
export function lineWriter(): (record: object) => string {
  let stringify = ndjson.stringify()
  const mark = randomUUID() // stands around the digits of a BigInt, which the package would refuse; no text can hold it
  const marked = new RegExp(`"${mark}(-?\\d+)"`, 'g')
  return record => {
    try {
      const plain = checked(record, mark)
      stringify.write(plain)
      const line = stringify.read() as string | null
      if (line === null) throw new TypeError('the serialiser gave no line')
      return plain === record ? line : line.replace(marked, '$1')
    } catch (error) {
      stringify = ndjson.stringify()
      if (error instanceof RangeError) throw new RecordFault('E_DEPTH', 'a record nested too deeply to be written: flatten it')
      if (error instanceof NotFinite)
        throw new RecordFault('E_NUMBER', `${error.path.join('.')} is ${error.value}: records hold finite numbers only`)
      throw error
    }
  }
}

class NotFinite extends Error {
  readonly path: string[] = []
  constructor(readonly value: number) {
    super('not finite')
  }
}

/** The value itself when it is plain; where it holds BigInts a copy with marked strings in their places. Throws NotFinite with the path. */
function checked<T>(value: T, mark: string): T {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new NotFinite(value)
    return value
  }
  if (typeof value === 'bigint') return `${mark}${value}` as T
  if (typeof value !== 'object' || value === null) return value
  if (ArrayBuffer.isView(value)) throw new TypeError('a typed array in a record: make it a plain one')
  return Array.isArray(value) ? (checkedArray(value, mark) as T) : checkedObject(value, mark)
}

function checkedArray(values: unknown[], mark: string): unknown[] {
  let copy: unknown[] | undefined
  for (let n = 0; n < values.length; n++) {
    const better = within(String(n), values[n], mark)
    if (better === values[n]) continue
    copy ??= [...values]
    copy[n] = better
  }
  return copy ?? values
}

function checkedObject<T extends object>(object: T, mark: string): T {
  let copy: T | undefined
  for (const key of Object.keys(object) as (keyof T & string)[]) {
    const better = within(key, object[key], mark)
    if (better === object[key]) continue
    copy ??= { ...object }
    copy[key] = better
  }
  return copy ?? object
}

function within<V>(key: string, value: V, mark: string): V {
  try {
    return checked(value, mark)
  } catch (error) {
    if (error instanceof NotFinite) error.path.unshift(key)
    throw error
  }
}
