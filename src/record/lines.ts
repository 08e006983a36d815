import { RecordFault } from './fault.js'

/** A line without its line feed, its number from 1, and whether the input ended before a line feed came. */
export type Line = { bytes: Buffer; number: number; unfinished: boolean }

const LF = 10
const CR = 13

/**
 * Splits a byte stream into lines: LF or CRLF, blank lines skipped (and counted), a last line without line feed given with `unfinished`.
 *
 * A line above `maxLine` bytes ends the iteration with RecordFault E_LINE_LENGTH, so that a file that is not made of lines does not fill the memory.
 */
export async function* lines(chunks: AsyncIterable<Buffer>, maxLine: number): AsyncGenerator<Line> {
  let pending: Buffer[] = []
  let held = 0
  let number = 1
  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      const tail = chunk.subarray(from, at)
      from = at + 1
      const bytes = trimmed(held === 0 ? tail : Buffer.concat([...pending, tail], held + tail.length))
      pending = []
      held = 0
      if (bytes.length > maxLine) throw tooLong(bytes.length, number, maxLine)
      if (!isBlank(bytes)) yield { bytes, number, unfinished: false }
      number++
    }
    if (from < chunk.length) {
      pending.push(chunk.subarray(from))
      held += chunk.length - from
      const cr = chunk[chunk.length - 1] === CR ? 1 : 0 // may turn out to belong to the line's end
      if (held - cr > maxLine) throw tooLong(held, number, maxLine)
    }
  }
  const bytes = trimmed(Buffer.concat(pending, held))
  if (!isBlank(bytes)) yield { bytes, number, unfinished: true }
}

function trimmed(bytes: Buffer): Buffer {
  return bytes.length > 0 && bytes[bytes.length - 1] === CR ? bytes.subarray(0, -1) : bytes
}

/** Only what JSON calls white space. */
export function isBlank(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (!isBlankByte(byte)) return false
  return true
}

export function isBlankByte(byte: number): boolean {
  return byte === 32 || byte === 9 || byte === LF || byte === CR
}

export function tooLong(length: number, line: number, maxLine: number): RecordFault {
  const fault = new RecordFault(
    'E_LINE_LENGTH',
    `a line of more than ${maxLine / 2 ** 20} MiB (${length} bytes so far): write one record a line, or raise --max-line`,
  )
  fault.origin = { file: '-', line }
  return fault
}
