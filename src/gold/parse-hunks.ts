import { type Hunk, PatchFault, type Run } from './patch.js'
import { withoutReturns } from './returns.js'

const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/s

/** Does the line open a hunk, well or badly formed? */
export function opensHunk(line: string): boolean {
  return /^@@ -\d/.test(line)
}

/**
 * Reads the hunks that stand at `lines[at]`, one behind the other (unified diff format; git-diff(1), "Generating patch text"), and says where they end.
 *
 * Lines end at LF only. A context line may have lost its leading blank. Throws PatchFault `truncated`, `corrupt`, `combined`.
 */
export function parseHunks(lines: readonly string[], at: number): { hunks: Hunk[]; end: number } {
  const hunks: Hunk[] = []
  let next = at
  while (next < lines.length && /^@@@? /.test(lines[next]!)) {
    const { hunk, end } = parseHunk(lines, next)
    hunks.push(hunk)
    next = end
  }
  return { hunks, end: next }
}

function parseHunk(lines: readonly string[], start: number): { hunk: Hunk; end: number } {
  const hunk = parseHeader(lines[start]!, start + 1)
  // A side without lines names the line before the gap, the other way its first line.
  let oldLine = hunk.oldCount === 0 ? hunk.oldStart + 1 : hunk.oldStart
  let newLine = hunk.newCount === 0 ? hunk.newStart + 1 : hunk.newStart
  let oldLeft = hunk.oldCount
  let newLeft = hunk.newCount
  let run: Run | undefined
  let last = ''
  let at = start + 1

  const change = () => {
    if (run === undefined) {
      run = { oldLine, removed: 0, newLine, added: 0 }
      hunk.runs.push(run)
    }
    return run
  }
  const noNewline = () => {
    if (last !== '+') hunk.noNewlineOld = true
    if (last !== '-') hunk.noNewlineNew = true
  }

  for (; oldLeft > 0 || newLeft > 0; at++) {
    const line = lines[at]
    if (line === undefined) throw new PatchFault('truncated', at, cutShort(lines[start]!, start, oldLeft, newLeft))
    if (line.startsWith('\\') && last !== '') {
      noNewline()
      continue
    }
    const sign = line === '' || line === '\r' ? ' ' : line[0]!
    if (!' -+'.includes(sign))
      throw new PatchFault('corrupt', at + 1, `a line inside a hunk begins with ${JSON.stringify(sign)}, none of ' ', '-', '+', '\\'`)
    if (sign === '-') change().removed++
    else if (sign === '+') change().added++
    else {
      run = undefined
      hunk.hasContext = true
    }
    if (sign !== '+') {
      oldLine++
      oldLeft--
    }
    if (sign !== '-') {
      newLine++
      newLeft--
    }
    if (oldLeft < 0 || newLeft < 0)
      throw new PatchFault(
        'corrupt',
        at + 1,
        `one line more on the ${oldLeft < 0 ? 'old' : 'new'} side than ${lines[start]!.trimEnd()} says`,
      )
    last = sign
  }
  if (lines[at]?.startsWith('\\') && last !== '') {
    noNewline()
    at++
  }
  hunk.endsInContext = last === ' '
  return { hunk, end: at }
}

function parseHeader(text: string, line: number): Hunk {
  if (text.startsWith('@@@'))
    throw new PatchFault('combined', line, 'a combined diff of a merge has no single old side: diff against one parent')
  const found = header.exec(text)
  const [oldStart, oldCount, newStart, newCount] = [found?.[1], found?.[2] ?? '1', found?.[3], found?.[4] ?? '1'].map(Number) as [
    number,
    number,
    number,
    number,
  ]
  const possible = (start: number, count: number) => Number.isSafeInteger(start + count) && (start > 0 || count === 0)
  if (!found || !possible(oldStart, oldCount) || !possible(newStart, newCount))
    throw new PatchFault('corrupt', line, `not a hunk header: ${JSON.stringify(text.slice(0, 60))}`)
  return {
    oldStart,
    oldCount,
    newStart,
    newCount,
    section: withoutReturns(found[5]!),
    runs: [],
    hasContext: false,
    endsInContext: false,
    noNewlineOld: false,
    noNewlineNew: false,
  }
}

function cutShort(head: string, start: number, oldLeft: number, newLeft: number): string {
  return `the text ends inside the hunk of line ${start + 1} (${head.slice(0, head.indexOf('@@', 2) + 2)}): ${oldLeft} old and ${newLeft} new lines are missing`
}
