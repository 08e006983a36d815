import type { Range } from '../record/schema.js'
import { goldFile } from './gold-files.js'
import { type Hunk, isGitlink, type PatchFile } from './patch.js'

/** `hunk`: one range a hunk; `run`: one range a run of changed lines. */
export type RangeRule = 'hunk' | 'run'

/** Lines of a file before the patch; undefined where only the patch is known. */
export type OldLineCount = (path: string) => number | undefined

/**
 * The gold line ranges of a patch, old side, in the patch's order (formulas 1.2).
 *
 * Rule `hunk`: from the first to the last removed line, insertions elsewhere in the hunk add nothing; without removals from the line before the first insertion
 * to the line behind the last, [k, k + 1] for one, clipped to the file. Rule `run` does the same for every run by itself. New, copied and binary files and
 * gitlinks have no range.
 * Without a line count, a hunk that has context but none behind its last change ends the file (rule `hunk`); else nothing clips the end.
 */
export function goldRanges(files: readonly PatchFile[], oldLineCount: OldLineCount, rule: RangeRule = 'hunk'): Range[] {
  return files.flatMap(file => {
    if (file.status === 'A' || file.status === 'C' || file.binary || isGitlink(file)) return []
    const path = goldFile(file)
    const last = oldLineCount(path)
    return file.hunks.flatMap(hunk => (rule === 'hunk' ? hunkRanges(hunk, last) : runRanges(hunk, last))).map(range => ({ path, ...range }))
  })
}

/** Does the file's line count decide any of its ranges? */
export function needsLineCount(file: PatchFile): boolean {
  return (
    file.status !== 'A' &&
    file.status !== 'C' &&
    !file.binary &&
    !isGitlink(file) &&
    file.hunks.some(h => h.runs.some(r => r.removed === 0))
  )
}

type Span = { start: number; end: number }

function hunkRanges(hunk: Hunk, lastLine: number | undefined): Span[] {
  const removing = hunk.runs.filter(run => run.removed > 0)
  const first = removing[0]
  if (first) {
    const last = removing.at(-1)!
    return [{ start: first.oldLine, end: last.oldLine + last.removed - 1 }]
  }
  if (hunk.runs.length === 0) return []
  const before = hunk.runs[0]!.oldLine - 1
  const behind = hunk.runs.at(-1)!.oldLine
  const atEnd = hunk.hasContext && !hunk.endsInContext
  return clipped(before, behind, lastLine ?? (atEnd ? behind - 1 : undefined))
}

function runRanges(hunk: Hunk, lastLine: number | undefined): Span[] {
  return hunk.runs.flatMap(({ oldLine, removed }) =>
    removed > 0 ? [{ start: oldLine, end: oldLine + removed - 1 }] : clipped(oldLine - 1, oldLine, lastLine),
  )
}

function clipped(from: number, to: number, lastLine: number | undefined): Span[] {
  const start = Math.max(from, 1)
  const end = Math.min(to, lastLine ?? to)
  return start <= end ? [{ start, end }] : []
}
