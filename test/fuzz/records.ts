import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import { FatalError, RecordFault } from '#cg/record/fault.js'
import type { Item } from '#cg/record/item.js'
import { parseLine } from '#cg/record/parse.js'
import { readRecords } from '#cg/record/read.js'
import { type Kind, schemas } from '#cg/record/schema.js'
import { lineWriter } from '#cg/record/write.js'
import type { Random } from '../property/generate.js'
import { rollout } from '../unit/score/example-rollout.js'
import { must, outline, type Target } from './target.js'

const kinds = Object.keys(schemas) as Kind[]
const known = new Set<string>(kinds)
const maxLine = 4096
const codes = ['E_PARSE', 'E_CUT', 'E_RECORD', 'E_VERSION', 'E_LINE_LENGTH']

type Read = { items: Item[]; error: RecordFault | FatalError | undefined }

const target: Target = {
  name: 'records',
  words: [
    ...[
      '"kind":',
      '"v":1',
      '"rollout"',
      '"instance"',
      '"barrier"',
      '"timing"',
      '"tokens"',
      '"id":',
      '{"instance_id":"i","base_commit":"c","repo":"o/r","problem_statement":"p"}',
    ],
    ...[
      '\n',
      '\r\n',
      ',\n',
      '[',
      ']',
      '[\n',
      '{',
      '}',
      ':',
      'null',
      'true',
      '""',
      '\\u',
      '\\"',
      '#int:',
      '12345678901234567890',
      '"__proto__":{"a":12345678901234567890}',
    ],
  ],
  maxBytes: 1 << 17,
  corpus() {
    const instances = readFileSync('fixtures/instances/dev.ndjson', 'utf8').split('\n').slice(0, 3)
    const short = '{"instance_id":"i1","repo":"o/r","base_commit":"c","problem_statement":"p"}'
    const barrier = `{"kind":"barrier","v":1,"step":0,"version":0,"groups":1,"digest":"${'0'.repeat(64)}"}`
    const texts = [
      `${instances.join('\n')}\n`,
      `${short}\n${barrier}\n${JSON.stringify(rollout())}\n${short}\n`,
      `{"kind":"run","v":1,"id":"r","stage":"reward","command":"cg-reward","version":"0","options":{"n":1},"seed":"0"}\n{"kind":"other","n":12345678901234567890}\n`,
      `${short.replace('"p"', '"p","big":12345678901234567890,"deep":{"a":[-9223372036854775808]}')}\n`,
      `[${short},\n ${short}\n]\n`,
      `[\n  {"a": [1, {"b": "]"}]}\n]`,
      `\ufeff\n\r\n${short}\r\n${short}`,
      '',
    ]
    return [...texts.map(text => Buffer.from(text)), gzipSync(`${short}\n${short}\n`), gzipSync(`[${short}]`)]
  },

  /**
   * Only the documented errors come, with the file and a line; what stands before a bad line comes out; the same comes in one piece, in pieces, and from plain
   * twins of the line and the array reader; a record that is written and read again is the same, and holds what the line held.
   */
  async check(input, random) {
    const whole = await read([input])
    const pieces = await read(cut(input, random))
    if (damagedGzip(input)) {
      must(whole.error !== undefined && pieces.error !== undefined, 'damaged gzip data is read as if it were whole')
      return `gzip ${whole.error.code} ${pieces.error.code}`
    }
    must(described(whole) === described(pieces), `in pieces it reads otherwise: ${described(whole)} / ${described(pieces)}`)
    const { error, items } = whole
    if (error instanceof FatalError)
      must(error.code === 'E_READ' && error.message.startsWith('in: '), `E_READ was to be expected: ${error.message}`)
    if (error instanceof RecordFault)
      must(codes.includes(error.code) && error.origin?.file === 'in' && error.origin.line >= 1, `${error.code} without its line`)
    compareWithTwin(input, whole)
    for (const item of items) rewritten(item)
    return `${error?.code} ${error ? outline(error.message) : ''} ${[...new Set(items.map(item => item.kind))].sort()}`
  },
}
export default target

async function read(chunks: Buffer[]): Promise<Read> {
  const items: Item[] = []
  try {
    for await (const item of readRecords('in', kinds, { input: Readable.from(chunks), maxLine })) items.push(item)
    return { items, error: undefined }
  } catch (error) {
    if (error instanceof RecordFault || error instanceof FatalError) return { items, error }
    throw error
  }
}

function cut(input: Buffer, { below, pick }: Random): Buffer[] {
  const most = pick([1, 3, 16, 200, 5000])
  if (input.length > 5000 * most) return [input.subarray(0, input.length >> 1), input.subarray(input.length >> 1)]
  const pieces: Buffer[] = []
  for (let at = 0; at < input.length; ) {
    const end = at + 1 + below(most)
    pieces.push(Buffer.from(input.subarray(at, end)))
    at = end
  }
  return pieces
}

/** Of an error its place and kind: how many bytes of a long line had come depends on the pieces. */
function described({ items, error }: Read): string {
  const rows = items.map(
    item => `${item.origin.line} ${item.kind === 'foreign' ? Buffer.from(item.bytes).toString('latin1') : text(item.record)}`,
  )
  const line = error instanceof RecordFault ? error.origin?.line : undefined
  return [...rows, error ? `${error.code} ${line} ${error.code === 'E_LINE_LENGTH' ? '' : error.message}` : 'end'].join('\n')
}

function text(record: object): string {
  return JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? `bigint ${value}` : value))
}

/** What a reader does that has the whole text. */
function compareWithTwin(input: Buffer, { items, error }: Read): void {
  if (error instanceof FatalError) return
  let bytes = input
  if (isGzip(input)) bytes = gunzipSync(input)
  if (bytes.subarray(0, 3).toString('hex') === 'efbbbf') bytes = bytes.subarray(3)
  if (bytes.find(byte => byte > 32) === 0x5b) {
    compareArray(bytes, items, error)
    return
  }
  let number = 0
  const expected: string[] = []
  let stopped: string | undefined
  for (const part of split(bytes)) {
    number++
    const line = part.at(-1) === 13 ? part.subarray(0, -1) : part
    if (line.length > maxLine) stopped = `E_LINE_LENGTH ${number}`
    else if (!line.every(byte => [9, 10, 13, 32].includes(byte)))
      try {
        parseLine(line, { file: 'in', line: number }, known)
        expected.push(String(number))
      } catch (fault) {
        stopped = `${(fault as RecordFault).code} ${number}`
      }
    if (stopped) break
  }
  const came = [...items.map(item => String(item.origin.line)), error && `${error.code} ${(error as RecordFault).origin?.line}`]
  must([...expected, stopped].join() === came.join(), `lines ${came} came instead of ${[...expected, stopped]}`)
}

/** A text that is a JSON array of objects gives these; one that is none is an error sooner or later. */
function compareArray(bytes: Buffer, items: readonly Item[], error: Error | undefined): void {
  let values: unknown
  try {
    values = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    must(error !== undefined, 'what is no JSON array is read as one')
    return
  }
  if (error !== undefined) return
  must((values as unknown[]).length === items.length, `${items.length} rows came of an array of ${(values as unknown[]).length}`)
  for (const [n, item] of items.entries())
    if (item.kind === 'foreign')
      must(
        JSON.stringify(JSON.parse(Buffer.from(item.bytes).toString())) === JSON.stringify((values as unknown[])[n]),
        `row ${n} of the array is another`,
      )
}

function isGzip(input: Buffer): boolean {
  return input[0] === 0x1f && input[1] === 0x8b
}

/** How much of it comes out before the damage is seen depends on the pieces. */
function damagedGzip(input: Buffer): boolean {
  if (!isGzip(input)) return false
  try {
    gunzipSync(input)
    return false
  } catch {
    return true
  }
}

function split(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  let from = 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
    parts.push(bytes.subarray(from, at))
    from = at + 1
  }
  return [...parts, bytes.subarray(from)]
}

const write = lineWriter()

function rewritten(item: Item): void {
  if (item.kind === 'foreign') return
  let line: string
  try {
    line = write(item.record)
  } catch (error) {
    if (error instanceof RecordFault && ['E_NUMBER', 'E_DEPTH'].includes(error.code)) return
    throw error
  }
  const again = parseLine(Buffer.from(line.slice(0, -1)), item.origin, known).item
  must(again.kind === item.kind && write(again.record) === line, 'a record that is written and read again is another')
}
