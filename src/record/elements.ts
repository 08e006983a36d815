import { RecordFault } from './fault.js'
import { isBlank, isBlankByte, type Line, tooLong } from './lines.js'

const LF = 10
const QUOTE = 34
const BACKSLASH = 92
const COMMA = 44
const OPEN_ARRAY = 91
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125

/**
 * Splits a file that is one JSON array into its elements, each as a line of its own (line feeds inside become spaces), with the number of the line it
 * begins on. Nothing but the element at hand is held in memory.
 *
 * Throws RecordFault E_PARSE for text after the array or an empty place between commas, E_LINE_LENGTH for an element above `maxLine` bytes. Input that ends
 * inside the array gives what there is of the last element as `unfinished`, nothing when the element before is whole. White space around elements is not held. Brackets are only counted: whether they
 * match inside an element is for its reader to see.
 */
export async function* arrayElements(chunks: AsyncIterable<Buffer>, maxLine: number): AsyncGenerator<Line> {
  let pending: Buffer[] = []
  let held = 0
  let line = 1
  let began = 1
  let depth = 0
  let inString = false
  let escaped = false
  let blank = true
  let begun = false
  let brokenString = false // a line feed inside: left there, so that the element is refused
  let elements = 0

  const take = (tail: Buffer): Buffer => {
    const bytes = Buffer.concat([...pending, tail], held + tail.length)
    if (bytes.length > maxLine) throw tooLong(bytes.length, began, maxLine)
    pending = []
    held = 0
    blank = true
    if (!brokenString) for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at)) bytes[at] = 32
    brokenString = false
    return bytes
  }

  for await (const chunk of chunks) {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (byte === LF) line++
      if (blank) {
        if (isBlankByte(byte)) {
          from = at + 1
          continue
        }
        blank = false
        began = line
      }
      if (depth === 0) {
        if (begun || byte !== OPEN_ARRAY)
          throw at_(line, 'text before or after the array: a file is either one JSON array or one object a line')
        begun = true
        depth = 1
        from = at + 1
        blank = true
        continue
      }
      if (inString) {
        if (byte === LF) brokenString = true
        if (escaped) escaped = false
        else if (byte === BACKSLASH) escaped = true
        else if (byte === QUOTE) inString = false
        continue
      }
      if (byte === QUOTE) inString = true
      else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth++
      else if (depth === 1 && (byte === COMMA || byte === CLOSE_ARRAY)) {
        const bytes = take(chunk.subarray(from, at))
        from = at + 1
        const empty = isBlank(bytes)
        if (!empty) yield { bytes, number: began, unfinished: false }
        else if (byte === COMMA || elements > 0) throw at_(line, 'nothing between two commas of the array: remove the comma')
        elements++
        if (byte !== COMMA) depth = 0
      } else if (depth > 1 && (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT)) depth--
    }
    if (from < chunk.length) {
      pending.push(chunk.subarray(from))
      held += chunk.length - from
      if (held > maxLine) throw tooLong(held, began, maxLine)
    }
  }
  if (depth === 0) return
  const whole = depth === 1 && !blank && !inString
  yield { bytes: take(Buffer.alloc(0)), number: began, unfinished: !whole }
  if (whole) yield { bytes: Buffer.alloc(0), number: line, unfinished: true }
}

function at_(line: number, message: string): RecordFault {
  const fault = new RecordFault('E_PARSE', message)
  fault.origin = { file: '-', line }
  return fault
}
