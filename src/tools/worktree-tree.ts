import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { RecordFault } from '../record/fault.js'
import { listTree, type TrackedFile } from '../repo/ls-tree.js'
import { nameBytes } from '../repo/shown-name.js'
import { type Blob, createBlobCache, isBinary } from './blob-cache.js'
import { type FileIndex, indexFiles } from './file-index.js'
import { matchGlob } from './glob-match.js'
import { collectLines } from './grep-lines.js'
import { literalsOf } from './literals.js'
import { guardPath } from './path-guard.js'
import { headInside, readInside } from './read-inside.js'
import { ripgrep } from './ripgrep.js'
import { scanBlobs } from './scan-blobs.js'
import type { GrepQuery, GrepResult, Tree } from './tree.js'

/** Where the tree's files and objects are. `scanBytes`: literals are searched in memory in selections up to this size (0: ripgrep always). */
export type WorktreeSource = { path: string; bare: string; tree: string; scanBytes?: number }

const blobs = createBlobCache(64 << 20)

/**
 * The files of a complete worktree of ours (`COMMIT.ready` is there) as a Tree.
 *
 * What belongs to it is read from the commit, not from the directory; each file's kind and size are compared once. Throws RecordFault E_WORKTREE if the
 * directory does not hold what the commit says.
 */
export async function worktreeTree(source: WorktreeSource, signal?: AbortSignal): Promise<Tree> {
  const index = indexFiles(await listTree(source.bare, source.tree, signal))
  checkFiles(source, index.files)
  const scanBytes = source.scanBytes ?? 8 << 20

  return {
    id: source.tree,
    list: async () => index.paths,
    read: async path => {
      const guarded = guardPath(path)
      if ('refused' in guarded) return { kind: 'missing' }
      const file = index.file(guarded.inside)
      if (file) return { kind: 'file', bytes: (await blobOf(source, file)).bytes }
      const entries = index.entries(guarded.inside)
      return entries ? { kind: 'directory', entries } : { kind: 'missing' }
    },
    grep: async (query, signal) => {
      const start = performance.now()
      const selected = select(index, query)
      if (selected === 'missing') return { kind: 'missing' }
      if (selected === 'timeout') return { kind: 'timeout', lines: [], shown: 0 }
      const left = { ...query, timeoutMs: query.timeoutMs - (performance.now() - start) }
      if (left.timeoutMs <= 0) return { kind: 'timeout', lines: [], shown: 0 }
      const literals = selected.reduce((sum, file) => sum + file.size, 0) <= scanBytes ? literalsOf(query.pattern) : undefined
      const scanned = literals && (await scanBlobs(selected, literals, left, file => blobOf(source, file), signal))
      return scanned ?? searchFiles(source, index, selected, left, signal)
    },
  }
}

function select(index: FileIndex, { path = '', glob, timeoutMs }: GrepQuery): readonly TrackedFile[] | 'missing' | 'timeout' {
  const guarded = guardPath(path)
  const within = 'inside' in guarded ? index.within(guarded.inside) : []
  if (within.length === 0 && path !== '') return 'missing'
  if (glob === undefined) return within
  const { matched, timeout } = matchGlob(
    glob,
    within.map(file => file.path),
    timeoutMs,
  )
  return timeout ? 'timeout' : matched.map(i => within[i]!)
}

async function searchFiles(
  source: WorktreeSource,
  index: FileIndex,
  files: readonly TrackedFile[],
  query: GrepQuery,
  signal?: AbortSignal,
): Promise<GrepResult> {
  if (files.length === 0) return { kind: 'matches', lines: [], shown: 0, total: 0, skippedBinary: 0 }
  const { line, found } = collectLines(query.limit, query.context, name => {
    const file = index.named(name)!
    return isBinaryFile(source, file) ? 'binary' : { path: file.path }
  })
  const names = files.map(file => nameBytes(file.path))
  const end = await ripgrep({ ...query, root: source.path, names }, line, signal).catch(error => {
    // a program cannot be started in a directory that is not there: it seems to be the program that is missing
    throw existsSync(source.path) ? error : damaged(source, 'the directory is gone')
  })
  const { lines, shown, total, skippedBinary } = found()
  if (end.kind === 'bad-pattern' || end.kind === 'failed') return end
  if (end.kind === 'timeout') return { kind: 'timeout', lines, shown }
  return { kind: 'matches', lines, shown, total, skippedBinary }
}

async function blobOf(source: WorktreeSource, file: TrackedFile): Promise<Blob> {
  const known = blobs.get(file.oid)
  if (known) return known
  const bytes = await readInside(source.path, nameBytes(file.path))
  if (!bytes || bytes.length !== file.size) throw damaged(source, `${file.path} is not the file of the commit`)
  return blobs.put(file.oid, bytes)
}

const binary = new Map<string, boolean>()
/** Blobs of which it is remembered whether they are binary; some 10 MB. */
const mostBinary = 100_000

/** Looked at only for files with a match. */
function isBinaryFile(source: WorktreeSource, file: TrackedFile): boolean {
  const known = blobs.get(file.oid)?.binary ?? binary.get(file.oid)
  if (known !== undefined) return known
  const head = headInside(source.path, nameBytes(file.path), 8000)
  if (!head) throw damaged(source, `${file.path} is not a regular file`)
  if (binary.size >= mostBinary) binary.clear()
  binary.set(file.oid, isBinary(head))
  return isBinary(head)
}

function checkFiles(source: WorktreeSource, files: readonly TrackedFile[]): void {
  const root = Buffer.from(join(source.path, '/'))
  for (const file of files) {
    const stat = lstatSync(Buffer.concat([root, nameBytes(file.path)]), { throwIfNoEntry: false })
    if (!stat) throw damaged(source, `${file.path} is missing`)
    if (!stat.isFile() || stat.size !== file.size) throw damaged(source, `${file.path} is not the file of the commit`)
  }
}

function damaged({ path }: WorktreeSource, what: string): RecordFault {
  return new RecordFault('E_WORKTREE', `${path}: ${what}: repair it with cg-worktree verify --fix`)
}
