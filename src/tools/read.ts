import { argumentProblem, type Parameters } from './arguments.js'
import { isBinary } from './blob-cache.js'
import { clipLine } from './clip.js'
import { fit, statusOnly } from './observation.js'
import { guardPath } from './path-guard.js'
import type { Caps, Observation, Tool } from './toolset.js'

const parameters: Parameters = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'A file; of a folder the entries are shown.' },
    start: { type: 'integer', description: 'First line, from 1.', minimum: 1 },
    end: { type: 'integer', description: 'Last line, included.', minimum: 1 },
  },
  required: ['path'],
}

/**
 * Shows lines of a file: `[path: lines A-B of N]`, then `line:text` (protocol, "Observations"). What the caps cut off is said by that first line; the status
 * is `truncated` when lines are missing that were asked for.
 */
export const read: Tool = {
  name: 'read',
  description: 'Read lines of a file, or the entries of a folder. Prints line:text for every line.',
  parameters,

  check(args) {
    const problem = argumentProblem(parameters, args)
    if (problem) return problem
    const { start = 1, end } = args as { start?: number; end?: number }
    return end !== undefined && end < start ? `end ${end} is before start ${start}` : undefined
  },

  async run(tree, args, caps, signal) {
    const path = guardPath(args.path as string)
    if ('refused' in path) return statusOnly('refused', `refused: ${path.refused}`)
    const found = await withinLimit(tree.read(path.inside, signal), caps.timeoutMs.read)
    if (found === 'timeout') return statusOnly('timeout', `timeout after ${caps.timeoutMs.read / 1000} s`)
    if (found.kind === 'missing') return statusOnly('not-found', 'no such file')
    if (found.kind === 'directory') return directory(found.entries, caps)
    if (isBinary(found.bytes)) return statusOnly('binary', 'binary file')
    return lines(path.inside, found.bytes, (args.start as number | undefined) ?? 1, args.end as number | undefined, caps)
  },
}

function directory(entries: string[], caps: Caps): Observation {
  return fit(entries, caps, kept => {
    const all = kept === entries.length
    return all
      ? { status: 'ok', words: 'is a directory' }
      : { status: 'truncated', words: `is a directory: ${kept} of ${entries.length} entries shown` }
  })
}

function lines(path: string, bytes: Uint8Array, start: number, end: number | undefined, caps: Caps): Observation {
  const starts = lineStarts(bytes)
  const total = starts.length
  if (total === 0) return statusOnly('empty', `${path}: empty file`)
  if (start > total) return statusOnly('not-found', `no such lines: ${path} has ${total}`)

  const asked = Math.min(end ?? total, total) - start + 1
  const text: string[] = []
  let broken = false
  for (let line = start; line < start + Math.min(asked, caps.lines); line++) {
    const raw = Buffer.from(bytes.subarray(starts[line - 1], starts[line] ?? bytes.length))
    const decoded = raw.toString()
    broken ||= decoded.includes('\ufffd') && !Buffer.from(decoded).equals(raw)
    text.push(`${line}:${clipLine(decoded.replace(/\n$/, ''), caps.lineChars)}`)
  }
  return fit(text, caps, kept => ({
    status: kept < asked ? 'truncated' : 'ok',
    head: `[${path}: lines ${start}-${start + kept - 1} of ${total}]`,
    words: broken ? 'not all is UTF-8, � stands for the rest' : undefined,
  }))
}

/** Offsets at which lines begin; a newline ends a line, so a file that ends in one has no empty line after it. */
function lineStarts(bytes: Uint8Array): number[] {
  const starts: number[] = []
  for (let at = 0; at < bytes.length; ) {
    starts.push(at)
    const newline = bytes.indexOf(10, at)
    at = newline < 0 ? bytes.length : newline + 1
  }
  return starts
}

async function withinLimit<T>(work: Promise<T>, limitMs: number): Promise<T | 'timeout'> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<'timeout'>(resolve => (timer = setTimeout(resolve, limitMs, 'timeout')))
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
