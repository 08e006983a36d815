import type { TrackedFile } from '../repo/ls-tree.js'
import type { Blob } from './blob-cache.js'
import { foldAscii, foldsBeyondAscii, scanFile } from './scan.js'
import type { GrepLine, GrepQuery, GrepResult } from './tree.js'

/**
 * Searches files for literal strings in memory: no process, and a blob is read once for all commits that hold it.
 *
 * Undefined where ripgrep must decide: letters beyond ASCII when case is ignored. `load` gives a file's content.
 */
export async function scanBlobs(
  files: readonly TrackedFile[],
  literals: readonly string[],
  query: GrepQuery,
  load: (file: TrackedFile) => Promise<Blob>,
  signal?: AbortSignal,
): Promise<GrepResult | undefined> {
  const { ignoreCase, context, limit } = query
  const needles = literals.map(literal => Buffer.from(literal))
  if (ignoreCase && needles.some(needle => needle.some(byte => byte >= 128))) return undefined
  const wanted = ignoreCase ? needles.map(foldAscii) : needles
  const mayFold = ignoreCase && wanted.some(needle => needle.includes('k') || needle.includes('s'))

  const deadline = performance.now() + query.timeoutMs
  const lines: GrepLine[] = []
  let total = 0
  let skippedBinary = 0
  for (const file of files) {
    signal?.throwIfAborted()
    if (performance.now() > deadline) return { kind: 'timeout', lines, shown: Math.min(total, limit) }
    const blob = await load(file)
    if (ignoreCase) blob.folded ??= foldAscii(blob.bytes)
    if (mayFold) blob.foldsBeyondAscii ??= foldsBeyondAscii(blob.bytes)
    if (mayFold && blob.foldsBeyondAscii) return undefined
    const searched = ignoreCase ? blob.folded! : blob.bytes
    if (blob.binary) skippedBinary += wanted.some(needle => searched.includes(needle)) ? 1 : 0
    else
      total += scanFile(
        { path: file.path, bytes: blob.bytes, searched },
        { literals: wanted, context, limit },
        Math.min(total, limit),
        lines,
      )
  }
  return { kind: 'matches', lines, shown: Math.min(total, limit), total, skippedBinary }
}
