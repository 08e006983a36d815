import type { GrepLine } from './tree.js'

/** A text file in memory; `searched` is its bytes, or their folded copy when case does not matter: a match lies at the same place in both. */
export type Scanned = { path: string; bytes: Buffer; searched: Buffer }

export type ScanQuery = { literals: readonly Buffer[]; context: number; limit: number }

/**
 * Lines of one file that hold one of the literals, with their context, appended to `lines`; returns how many match.
 *
 * Does what ripgrep does for the same pattern (its slower twin, which tests compare it with): of several matches in a line the leftmost is marked, of those
 * that begin together the first literal. Content is added for the first `limit − shown` matches; all are counted. Literals must be folded if case is ignored.
 */
export function scanFile(file: Scanned, query: ScanQuery, shown: number, lines: GrepLine[]): number {
  const bytes = file.searched
  const next = query.literals.map(literal => bytes.indexOf(literal))
  const hits: { start: number; end: number; at: number; length: number }[] = []
  for (;;) {
    let best = -1
    for (let i = 0; i < next.length; i++) if (next[i]! >= 0 && (best < 0 || next[i]! < next[best]!)) best = i
    if (best < 0) break
    const at = next[best]!
    const start = at === 0 ? 0 : bytes.lastIndexOf(10, at - 1) + 1
    const newline = bytes.indexOf(10, at)
    const end = newline < 0 ? bytes.length : newline
    hits.push({ start, end, at, length: query.literals[best]!.length })
    for (let i = 0; i < next.length; i++) if (next[i]! >= 0 && next[i]! < end) next[i] = bytes.indexOf(query.literals[i]!, end)
  }
  addLines(file, hits, query.limit - shown, query.context, lines)
  return hits.length
}

/** Adds the first `wanted` hits and their context in order, no line twice. */
function addLines(
  file: Scanned,
  hits: { start: number; end: number; at: number; length: number }[],
  wanted: number,
  context: number,
  lines: GrepLine[],
): void {
  const { path, bytes } = file
  let number = 1
  let counted = 0
  let last = 0
  for (const [i, hit] of hits.entries()) {
    if (i >= wanted) break
    for (let newline = bytes.indexOf(10, counted); newline >= 0 && newline < hit.start; newline = bytes.indexOf(10, counted)) {
      counted = newline + 1
      number++
    }
    const before: GrepLine[] = []
    for (let n = number - 1, end = hit.start - 1; n > last && n >= number - context && end >= 0; n--) {
      const start = end === 0 ? 0 : bytes.lastIndexOf(10, end - 1) + 1
      before.unshift({ path, line: n, text: bytes.toString('utf8', start, end), match: false })
      end = start - 1
    }
    lines.push(...before)
    const text = bytes.toString('utf8', hit.start, hit.end)
    const units = (to: number) => (text.length === hit.end - hit.start ? to - hit.start : bytes.toString('utf8', hit.start, to).length)
    lines.push({ path, line: number, text, match: true, at: [units(hit.at), units(hit.at + hit.length)] })
    last = number

    const stop = hits[i + 1]?.start ?? bytes.length
    for (let start = hit.end + 1; start < stop && last < number + context; ) {
      const newline = bytes.indexOf(10, start)
      const end = newline < 0 ? bytes.length : newline
      last++
      lines.push({ path, line: last, text: bytes.toString('utf8', start, end), match: false })
      start = end + 1
    }
  }
}

/** A copy with A–Z in lower case. */
export function foldAscii(bytes: Buffer): Buffer {
  const folded = Buffer.from(bytes)
  for (let i = 0; i < folded.length; i++) if (folded[i]! >= 65 && folded[i]! <= 90) folded[i]! |= 32
  return folded
}

/** Does the text hold a character beyond ASCII that matches an ASCII letter when case is ignored: K (kelvin sign) or ſ (long s)? */
export function foldsBeyondAscii(bytes: Buffer): boolean {
  return bytes.includes('\u212a') || bytes.includes('\u017f')
}
