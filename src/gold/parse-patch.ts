import { opensHunk, parseHunks } from './parse-hunks.js'
import { PatchFault, type PatchFile } from './patch.js'
import { commonName, headerName } from './patch-names.js'
import { unquoteName } from './quoting.js'
import { withoutReturns } from './returns.js'

/**
 * Reads a patch: git's format with renames, copies, modes, binary parts and gitlinks, or plain `diff -u` (git-diff(1), "Generating patch text").
 *
 * Entries keep the patch's order; a file that occurs twice gives two. Text before, between and behind entries is skipped (mail headers, trailers); the last
 * line feed may be missing. Names lose their first `strip` directories, as with `patch -p`; names in `rename` and `copy` lines have no prefix.
 * Bytes that were no UTF-8 are U+FFFD. Throws PatchFault with the line of the text.
 */
export function parsePatch(text: string, strip = 1): PatchFile[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const files: PatchFile[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at]!
    if (/^(diff --cc |diff --combined |@@@ )/.test(line))
      throw new PatchFault('combined', at + 1, 'a combined diff of a merge has no single old side: diff against one parent')
    if (opensHunk(line))
      throw new PatchFault(
        'fragment without header',
        at + 1,
        'a hunk without the header of its file, or behind lines that its counts do not cover',
      )
    const entry = line.startsWith('diff --git ')
      ? gitEntry(lines, at, strip)
      : hasFileHeader(lines, at) && opensHunk(lines[at + 2] ?? '')
        ? plainEntry(lines, at, strip)
        : undefined
    if (entry) files.push(entry.file)
    at = entry ? entry.end : at + 1
  }
  if (files.length === 0) throw new PatchFault('empty', Math.max(lines.length, 1), 'no diff in the text')
  return files
}

type Entry = { file: PatchFile; end: number }

function gitEntry(lines: readonly string[], start: number, strip: number): Entry {
  const name = readable(commonName(header(lines, start).slice('diff --git '.length), strip), start)
  const file: PatchFile = {
    old: name,
    new: name,
    status: 'M',
    similarity: null,
    dissimilarity: null,
    oldMode: null,
    newMode: null,
    binary: false,
    hunks: [],
  }
  let at = start + 1
  for (; at < lines.length; at++) {
    const line = header(lines, at)
    if (hasFileHeader(lines, at)) {
      at = fileHeader(file, lines, at, strip)
      break
    }
    if (!extendedHeader(file, line, at) && line !== '' && !(file.binary && !/^(diff --|--- |\+\+\+ )/.test(line))) break
  }
  if (file.status === 'A') file.old = null
  if (file.status === 'D') file.new = null
  checkNames(file, start, strip)
  return { file, end: at }
}

/** `--- ` and `+++ ` and the hunks behind them; gives the line after these. */
function fileHeader(file: PatchFile, lines: readonly string[], at: number, strip: number): number {
  const old = readable(headerName(header(lines, at).slice(4), strip), at)
  const new_ = readable(headerName(header(lines, at + 1).slice(4), strip), at + 1)
  if (file.status !== 'R' && file.status !== 'C') {
    file.old = old.name ?? file.old
    file.new = new_.name ?? file.new
    if (old.nothing) file.status = 'A'
    else if (new_.nothing) file.status = 'D'
  }
  const { hunks, end } = parseHunks(lines, at + 2)
  if (hunks.length === 0) throw new PatchFault('truncated', at + 2, 'no hunk behind the names of the file')
  file.hunks = hunks
  return end
}

/** Takes one of git's extended header lines; false for any other line. */
function extendedHeader(file: PatchFile, line: string, at: number): boolean {
  const found =
    /^(old mode|new mode|deleted file mode|new file mode|rename from|rename to|copy from|copy to|similarity index|dissimilarity index|index) (.*)$/s.exec(
      line,
    )
  if (found === null) {
    const binary = line === 'GIT binary patch' || (line.startsWith('Binary files ') && line.endsWith(' differ'))
    file.binary ||= binary
    return binary
  }
  const value = found[2]!
  switch (found[1]) {
    case 'old mode':
      file.oldMode = value
      break
    case 'new mode':
      file.newMode = value
      break
    case 'deleted file mode':
      file.oldMode = value
      file.status = 'D'
      break
    case 'new file mode':
      file.newMode = value
      file.status = 'A'
      break
    case 'rename from':
    case 'copy from':
      file.old = readable(unquoteName(value), at)
      file.status = line.startsWith('rename') ? 'R' : 'C'
      break
    case 'rename to':
    case 'copy to':
      file.new = readable(unquoteName(value), at)
      break
    case 'similarity index':
      file.similarity = Number.parseInt(value, 10)
      break
    case 'dissimilarity index':
      file.dissimilarity = Number.parseInt(value, 10)
      break
    case 'index': {
      // A third word is the mode of both sides.
      const mode = value.split(' ')[1]
      if (mode !== undefined && file.status !== 'A' && file.status !== 'D') {
        file.oldMode ??= mode
        file.newMode ??= mode
      }
    }
  }
  return true
}

function plainEntry(lines: readonly string[], at: number, strip: number): Entry {
  const old = readable(headerName(header(lines, at).slice(4), strip), at)
  const new_ = readable(headerName(header(lines, at + 1).slice(4), strip), at + 1)
  const status = old.nothing ? 'A' : new_.nothing ? 'D' : 'M'
  checkNames({ status, old: old.name, new: new_.name }, at, strip)
  // x.py.orig and x.py: the shorter name, as git does
  const name = status === 'M' ? (new_.name!.length < old.name!.length ? new_.name : old.name) : null
  const { hunks, end } = parseHunks(lines, at + 2)
  const file: PatchFile = {
    old: name ?? old.name,
    new: name ?? new_.name,
    status,
    similarity: null,
    dissimilarity: null,
    oldMode: null,
    newMode: null,
    binary: false,
    hunks,
  }
  return { file, end }
}

/** Every side that the entry's status says there is has a name; an empty one is none. */
function checkNames({ status, old, new: new_ }: Pick<PatchFile, 'status' | 'old' | 'new'>, start: number, strip: number): void {
  const names = status === 'A' ? [new_] : status === 'D' ? [old] : [old, new_]
  if (!names.every(Boolean))
    throw new PatchFault('no name', start + 1, `no file name with ${strip} director${strip === 1 ? 'y' : 'ies'} to strip: try --strip 0`)
}

function hasFileHeader(lines: readonly string[], at: number): boolean {
  return lines[at]!.startsWith('--- ') && (lines[at + 1]?.startsWith('+++ ') ?? false)
}

/** A header line; a patch that was converted to CRLF has CRs behind it. */
function header(lines: readonly string[], at: number): string {
  return withoutReturns(lines[at]!)
}

function readable<T>(name: T | undefined, at: number): T {
  if (name === undefined) throw new PatchFault('bad quote', at + 1, 'a quoted file name that does not end, or has an unknown escape')
  return name
}
