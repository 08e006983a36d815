import type { Answer, Range } from '../record/schema.js'
import { normalisePath } from '../score/normalise-path.js'
import { readLenientJson } from './lenient-json.js'
import { visibleText } from './visible-text.js'

/** The prediction of a rollout without a readable answer. */
export const noAnswer: Answer = { files: [], ranges: [], modules: [], functions: [], parse: 'none' }

/**
 * The answer of a turn, or undefined where it holds no complete `<answer>…</answer>`; the last complete block counts (protocol: answer).
 *
 * `parse` is `exact` for the documented forms, `repaired` when something was forgiven (quotes, commas, a fence, a bare list, entries that had to be left
 * out), `none` for a block that says nothing readable: the empty prediction. Paths are normalised, duplicates dropped, order kept.
 */
export function parseAnswer(turn: string): Answer | undefined {
  const blocks = [...visibleText(turn).matchAll(/<answer>((?:(?!<answer>)[\s\S])*?)<\/answer>/g)]
  const last = blocks.at(-1)
  if (!last) return undefined
  const read = readLenientJson(last[1]!)
  if (!read) return noAnswer
  const fields = answerFields(read.value)
  if (!fields) return noAnswer

  let repaired = read.repaired || fields.repaired
  const files: string[] = []
  for (const file of fields.files) {
    if (typeof file !== 'string' || file.trim() === '') repaired = true
    else files.push(normalisePath(file.trim()))
  }
  const ranges = new Map<string, Range>()
  for (const entry of fields.ranges) {
    const range = readRange(entry)
    if (!range) repaired = true
    else ranges.set(`${range.start} ${range.end} ${range.path}`, range)
  }
  return { ...noAnswer, files: [...new Set(files)].filter(Boolean), ranges: [...ranges.values()], parse: repaired ? 'repaired' : 'exact' }
}

/** `{"files": […], "line_ranges": […]}`; forgiven: a bare list of files, one file instead of a list. */
function answerFields(value: unknown): { files: unknown[]; ranges: unknown[]; repaired: boolean } | undefined {
  if (Array.isArray(value)) return { files: value, ranges: [], repaired: true }
  if (typeof value !== 'object' || value === null) return undefined
  const { files, line_ranges: ranges } = value as { files?: unknown; line_ranges?: unknown }
  if (!Array.isArray(files) && typeof files !== 'string') return undefined
  const listed = Array.isArray(ranges) ? ranges : []
  return {
    files: Array.isArray(files) ? files : [files],
    ranges: listed,
    repaired: !Array.isArray(files) || (ranges !== undefined && ranges !== null && !Array.isArray(ranges)),
  }
}

/** `"a.py:12-20"`, `{"path"|"file", "start"|"start_line", "end"|"end_line"}` or `[path, start, end]`; lines from 1, start ≤ end. */
function readRange(entry: unknown): Range | undefined {
  const parts = rangeParts(entry)
  if (!parts) return undefined
  const [path, start, end] = parts
  if (typeof path !== 'string' || !isLine(start) || !isLine(end) || start > end) return undefined
  const normal = normalisePath(path.trim())
  return normal === '' ? undefined : { path: normal, start, end }
}

function rangeParts(entry: unknown): [unknown, unknown, unknown] | undefined {
  if (typeof entry === 'string') {
    const match = /^(.+):(\d{1,9})(?:-(\d{1,9}))?$/s.exec(entry.trim())
    return match ? [match[1], Number(match[2]), Number(match[3] ?? match[2])] : undefined
  }
  if (Array.isArray(entry)) return entry.length === 3 ? [entry[0], entry[1], entry[2]] : undefined
  if (typeof entry !== 'object' || entry === null) return undefined
  const o = entry as Record<string, unknown>
  return [o.path ?? o.file, o.start ?? o.start_line, o.end ?? o.end_line]
}

function isLine(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}
