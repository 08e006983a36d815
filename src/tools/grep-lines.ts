import type { GrepLine } from './tree.js'

/** What ripgrep prints for `--json`, as far as it is used (printer crate, `JSON` type): text is UTF-8, or base64 bytes where it is not. */
type Text = { text: string } | { bytes: string }
type Event = {
  type: 'begin' | 'match' | 'context'
  data: { path: Text; lines: Text; line_number: number; submatches: { start: number; end: number }[] }
}

/** Who a searched name belongs to: the path to show, or `binary`. */
export type Owner = (name: string) => { path: string } | 'binary'

/** Lines found so far: matches up to the limit with their context; `total` counts all matches. */
export type Found = { lines: GrepLine[]; shown: number; total: number; skippedBinary: number }

/**
 * Collects ripgrep's JSON lines. After `limit` matches it only counts, without parsing them. Files that are binary are counted, not shown.
 *
 * `owner` is asked once per file that has a match, with the name's bytes as a latin1 string.
 */
export function collectLines(limit: number, context: number, owner: Owner): { line(json: Buffer): void; found(): Found } {
  const lines: GrepLine[] = []
  let shown = 0
  let total = 0
  let skippedBinary = 0
  let path: string | undefined

  const line = (json: Buffer) => {
    const kind = json.toString('latin1', 9, 14)
    if (kind === 'begin') {
      const { data } = JSON.parse(json.toString()) as Event
      const whose = owner(bytesOf(data.path).toString('latin1').replace(/^\.\//, ''))
      path = whose === 'binary' ? undefined : whose.path
      if (whose === 'binary') skippedBinary++
    } else if (kind === 'match' && path !== undefined) {
      total++
      if (shown === limit) return
      const { data } = JSON.parse(json.toString()) as Event
      shown++
      lines.push({ path, line: data.line_number, ...textAndMatch(data), match: true })
    } else if (kind === 'conte' && path !== undefined && total === shown) {
      const { data } = JSON.parse(json.toString()) as Event
      lines.push({ path, line: data.line_number, text: withoutNewline(bytesOf(data.lines)).toString(), match: false })
    }
  }

  const found = () => {
    const last = lines.findLastIndex(l => l.match)
    if (total === shown || last < 0) return { lines, shown, total, skippedBinary }
    // What follows the last match may be context of the next one, which is not shown.
    const { path, line } = lines[last]!
    return { lines: lines.filter((l, i) => i <= last || (l.path === path && l.line <= line + context)), shown, total, skippedBinary }
  }
  return { line, found }
}

function textAndMatch(data: Event['data']): { text: string; at?: [number, number] } {
  const bytes = withoutNewline(bytesOf(data.lines))
  const text = bytes.toString()
  const first = data.submatches[0]
  if (!first) return { text }
  // Offsets are in bytes; in ASCII they are those of the string.
  const units = (offset: number) =>
    text.length === bytes.length ? Math.min(offset, text.length) : bytes.toString('utf8', 0, offset).length
  return { text, at: [units(first.start), units(first.end)] }
}

function bytesOf(text: Text): Buffer {
  return 'text' in text ? Buffer.from(text.text) : Buffer.from(text.bytes, 'base64')
}

function withoutNewline(bytes: Buffer): Buffer {
  return bytes.at(-1) === 10 ? bytes.subarray(0, -1) : bytes
}
