import { goldFiles } from '#cg/gold/gold-files.js'
import { goldRanges, type OldLineCount } from '#cg/gold/gold-ranges.js'
import { parsePatch } from '#cg/gold/parse-patch.js'
import { isGitlink, PatchFault, type PatchFile } from '#cg/gold/patch.js'
import { unquoteName } from '#cg/gold/quoting.js'
import type { GoldenKind } from '../kind.js'
import { goldenFile } from './files.js'
import { worst } from './worst.js'

type PatchCase = {
  name: string
  patch: string
  strip: number
  old_line_counts: Record<string, number>
  expected: {
    error?: string
    files: unknown
    gold_files: unknown
    gold_ranges: unknown
    gold_ranges_patch_only?: unknown
    gold_ranges_per_run?: unknown
  }
}

const patches: GoldenKind<PatchCase> = {
  name: 'diff',
  find: dir => goldenFile<{ cases: PatchCase[] }>(dir, 'diff', 'cases.json')?.cases ?? [],
  run(c) {
    const seen = worst(0)
    const expected = c.expected
    let files: PatchFile[]
    try {
      files = parsePatch(c.patch, c.strip)
    } catch (error) {
      if (!(error instanceof PatchFault)) throw error
      seen.same('error', error.code, expected.error)
      return seen.result()
    }
    if (expected.error) return { status: 'failed', message: `accepted, expected ${expected.error}` }
    seen.same('files', files.map(described), expected.files)
    seen.same('gold files', bytewise(goldFiles(files)), expected.gold_files)
    const known: OldLineCount = path => c.old_line_counts[path]
    seen.same('gold ranges', goldRanges(files, known), expected.gold_ranges)
    seen.same(
      'patch only',
      goldRanges(files, () => undefined),
      expected.gold_ranges_patch_only ?? expected.gold_ranges,
    )
    seen.same('per run', goldRanges(files, known, 'run'), expected.gold_ranges_per_run ?? expected.gold_ranges)
    return seen.result()
  },
}

type QuotingCase = { name: string; quoted: string; quoted_quotepath_off: string }

const quoting: GoldenKind<QuotingCase> = {
  name: 'diff/quoting',
  find: dir => goldenFile<{ cases: QuotingCase[] }>(dir, 'diff', 'quoting.json')?.cases ?? [],
  run(c) {
    const seen = worst(0)
    seen.same('quotePath on', unquoteName(c.quoted), c.name)
    seen.same('quotePath off', unquoteName(c.quoted_quotepath_off), c.name)
    return seen.result()
  },
}

export const kinds: GoldenKind[] = [patches, quoting]

function described(file: PatchFile) {
  return {
    old: file.old,
    new: file.new,
    status: file.status,
    similarity: file.similarity,
    dissimilarity: file.dissimilarity,
    old_mode: file.oldMode,
    new_mode: file.newMode,
    binary: file.binary,
    submodule: isGitlink(file),
    hunks: file.hunks.map(hunk => ({
      old_start: hunk.oldStart,
      old_count: hunk.oldCount,
      new_start: hunk.newStart,
      new_count: hunk.newCount,
      section: hunk.section,
      removed: hunk.runs.flatMap(run => numbers(run.oldLine, run.removed)),
      added: hunk.runs.flatMap(run => numbers(run.newLine, run.added)),
      inserted_after: hunk.runs.filter(run => run.removed === 0).map(run => run.oldLine - 1),
      no_newline_old: hunk.noNewlineOld,
      no_newline_new: hunk.noNewlineNew,
    })),
  }
}

function numbers(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, n) => from + n)
}

function bytewise(paths: string[]): string[] {
  return [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}
