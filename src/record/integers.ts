import { randomUUID } from 'node:crypto'

/** Does a text hold a number that may not fit a double exactly? Cheap; may say yes for digits inside strings. */
const suspicious = /[:,[\s]-?\d{16,}/
/** Stands before the digits while they are a string. No text can hold it, not even behind escapes. */
const mark = randomUUID()

/**
 * Parses a JSON text of which JSON.parse would round integers, those outside ±(2^53 − 1), and gives them as BigInt; undefined when there are none.
 *
 * For fields that cg does not know and must write again as they were.
 */
export function parseWithBigIntegers(text: string): unknown {
  if (!suspicious.test(text)) return undefined
  let found = false
  let marked = ''
  let at = 0
  while (at < text.length) {
    const quote = text.indexOf('"', at)
    const end = quote === -1 ? text.length : quote
    marked += text.slice(at, end).replace(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, token => {
      if (!/^-?\d{16,}$/.test(token) || Number.isSafeInteger(Number(token))) return token
      found = true
      return `"${mark}${token}"`
    })
    if (quote === -1) break
    at = stringEnd(text, quote)
    marked += text.slice(quote, at)
  }
  if (!found) return undefined
  return JSON.parse(marked, (_, value) => (typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value))
}

/** The place after the closing quote of the string that begins at `quote`. */
function stringEnd(text: string, quote: number): number {
  let at = text.indexOf('"', quote + 1)
  for (;;) {
    let slashes = 0
    while (text[at - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return at + 1
    at = text.indexOf('"', at + 1)
  }
}

type Shape = { shape?: Record<string, Shape>; element?: Shape; unwrap?: () => Shape }

/**
 * Puts the BigInts of `exact` into the fields of `record` that its schema does not name; fields that it names stay numbers.
 *
 * `record` and `exact` come from the same text; `record` is changed.
 */
export function restoreIntegers(record: Record<string, unknown>, exact: Record<string, unknown>, schema: unknown): void {
  let shape = schema as Shape | undefined
  while (shape && !shape.shape && !shape.element && shape.unwrap) shape = shape.unwrap()
  for (const [key, value] of Object.entries(exact)) {
    if (typeof value !== 'object' && typeof value !== 'bigint') continue
    const field = Array.isArray(exact) ? shape?.element : shape?.shape?.[key]
    const here = record[key]
    if (field === undefined) record[key] = value
    else if (typeof here === 'object' && here !== null && value !== null && typeof value === 'object')
      restoreIntegers(here as Record<string, unknown>, value as Record<string, unknown>, field)
  }
}
