import { isUtf8 } from 'node:buffer'
import type { z } from 'zod'
import { RecordFault } from './fault.js'
import { parseWithBigIntegers, restoreIntegers } from './integers.js'
import type { Item, Known, Origin } from './item.js'
import { locateJsonError } from './locate.js'
import { type Kind, schemas } from './schema.js'

/** The one version of every kind that this cg knows. */
const version = 1

export type Parsed = {
  item: Item
  /** Undefined: a row that is no record of ours. */
  kind: string | undefined
  value: Record<string, unknown>
}

/**
 * One line of input as an item: `Known` and checked when its kind is among `kinds`, else the bytes it was.
 *
 * Throws RecordFault with origin, and where it helps the text and a place in it: E_PARSE (not UTF-8, not JSON, not an object), E_VERSION (a kind of ours in a
 * version that is not), E_RECORD (a field is missing or of the wrong type). Of a repeated name the last value counts, as for JSON.parse.
 */
export function parseLine(bytes: Buffer, origin: Origin, kinds: ReadonlySet<string>): Parsed {
  if (!isUtf8(bytes))
    throw fault('E_PARSE', 'not UTF-8: convert the file', origin, bytes.toString('utf8'), bytes.toString('utf8').indexOf('\ufffd'))
  const text = bytes.toString('utf8')
  const value = parseObject(text, origin)
  const kind = kindOf(value)
  const schema = kind === undefined ? undefined : (schemas as Record<string, z.ZodType>)[kind]
  if (schema === undefined) return { item: { kind: 'foreign', bytes, origin }, kind, value }
  if (value.v !== undefined && value.v !== version)
    throw fault(
      'E_VERSION',
      `kind ${kind} in version ${JSON.stringify(value.v)}, and this cg knows version ${version}: use the cg that wrote it`,
      origin,
    )
  if (!kinds.has(kind!)) return { item: { kind: 'foreign', bytes, origin }, kind, value }

  // rows of other tools come without kind and v; from here on they have them
  const row = schemas[kind as Kind].shape.kind.safeParse(undefined).success ? { kind, v: version, ...value } : value
  const checked = schema.safeParse(row)
  if (!checked.success) throw fault('E_RECORD', `not a good ${kind} record: ${describe(checked.error)}: see cg-record(5)`, origin)
  const record = checked.data as Record<string, unknown>
  const exact = parseWithBigIntegers(text)
  if (exact !== undefined) restoreIntegers(record, exact as Record<string, unknown>, schema)
  return { item: { kind, record, origin } as unknown as Known, kind, value }
}

function parseObject(text: string, origin: Origin): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const found = locateJsonError(text)
    if (found === undefined) throw fault('E_PARSE', (error as Error).message, origin, text, 0)
    const pretty = found.cut && /^\s*[[{]\s*$/.test(text)
    const advice = pretty
      ? "write one object a line ('jq -c .' does it)"
      : found.cut
        ? 'the line is cut off'
        : 'write one JSON object a line'
    const thrown = fault(found.cut ? 'E_CUT' : 'E_PARSE', `not JSON: ${found.message}: ${advice}`, origin, text, found.at)
    throw thrown
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  const what = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`
  throw fault('E_PARSE', `${what}, not an object: write one JSON object a line`, origin, text, 0)
}

/** `kind` where there is one, else what the row's fields say: trajectories before instances, because they may have both. */
function kindOf(value: Record<string, unknown>): string | undefined {
  if (value.kind !== undefined) return typeof value.kind === 'string' ? value.kind : undefined
  if (Array.isArray(value.trajectory) || Array.isArray(value.messages)) return 'trajectory'
  if (value.instance_id !== undefined && (value.problem_statement !== undefined || value.base_commit !== undefined)) return 'instance'
  return undefined
}

/** The first issue with its path, `turns[2].text: expected string, received number`, and how many more there are. */
function describe(error: z.ZodError): string {
  const [first, ...more] = error.issues
  const path = first!.path.map(part => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
  const what = first!.message
    .replace(/^Invalid input: /, '')
    .replace('expected nonoptional, received undefined', 'missing')
    .replace(/expected (.+), received undefined/, 'missing ($1)')
  return `${path.slice(1) || 'record'}: ${what}${more.length > 0 ? ` (and ${more.length} more)` : ''}`
}

function fault(code: string, message: string, origin: Origin, text?: string, at?: number): RecordFault {
  const made = new RecordFault(code, message)
  made.origin = origin
  if (text !== undefined) made.excerpt = { text, at: Math.max(0, at ?? 0) }
  return made
}
