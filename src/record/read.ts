import type { Readable } from 'node:stream'
import { arrayElements } from './elements.js'
import { RecordFault } from './fault.js'
import type { Item } from './item.js'
import { isBlank, type Line, lines } from './lines.js'
import { parseLine } from './parse.js'
import type { Kind } from './schema.js'
import { source } from './source.js'

export const defaultMaxLine = 16 * 2 ** 20

export type ReadOptions = {
  /** Bytes of one line; default 16 MiB. */
  maxLine?: number
  /** Ends the reading quietly. */
  signal?: AbortSignal
  /** Where the bytes come from instead; the file only names them. */
  input?: Readable
  /** Told of every line that could be read, before it is given out. */
  seen?(kind: string | undefined, value: Record<string, unknown>, bytes: Buffer): void
  /** What stands for a line that could not be read; throws to end the reading, which is the default. */
  fault?(fault: RecordFault): Item
  /** A last line that is cut off: true drops it, because somebody else says so. */
  cut?(fault: RecordFault): boolean
}

/**
 * Reads records from a file (`-`: standard input): JSON Lines or one JSON array, plain or gzip, with or without byte order mark.
 *
 * Records of `kinds` come checked, everything else as the bytes it was. Throws RecordFault with the file and line for what is not a record (E_PARSE, E_CUT,
 * E_RECORD, E_VERSION, E_LINE_LENGTH), FatalError for what cannot be read at all.
 */
export async function* readRecords(file: string, kinds: Iterable<Kind>, options: ReadOptions = {}): AsyncGenerator<Item> {
  const known = new Set<string>(kinds)
  const { maxLine = defaultMaxLine } = options
  try {
    for await (const line of rows(source(file, options.signal, options.input), maxLine)) {
      const item = readLine(line, file, known, options)
      if (item) yield item
      if (options.signal?.aborted) return
    }
  } catch (error) {
    if (error instanceof RecordFault && error.origin) error.origin = { file, line: error.origin.line }
    throw error
  }
}

function readLine({ bytes, number, unfinished }: Line, file: string, kinds: ReadonlySet<string>, options: ReadOptions): Item | undefined {
  try {
    const { item, kind, value } = parseLine(bytes, { file, line: number }, kinds)
    options.seen?.(kind, value, bytes)
    return item
  } catch (error) {
    if (!(error instanceof RecordFault)) throw error
    if (unfinished && error.code === 'E_CUT' && options.cut?.(error)) return undefined
    if (options.fault === undefined) throw error
    return options.fault(error)
  }
}

/** Lines, or the elements of the array when the first byte that is not white space opens one. */
async function* rows(chunks: AsyncGenerator<Buffer>, maxLine: number): AsyncGenerator<Line> {
  const first: Buffer[] = []
  for (;;) {
    const next = await chunks.next()
    if (next.done) break
    first.push(next.value)
    if (!isBlank(next.value)) break
  }
  async function* all() {
    yield* first
    yield* chunks
  }
  const opens = first.at(-1)?.find(byte => byte > 32) === 0x5b
  yield* opens ? arrayElements(all(), maxLine) : lines(all(), maxLine)
}
