import { existsSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { makeDirectory } from '../record/make-directory.js'
import { temporaryName } from '../record/temporary.js'
import { writing } from '../record/write-failure.js'
import { administration, git } from './git.js'
import { GitFailure, gitFailure } from './git-failure.js'
import { leaseTree } from './lease.js'
import { withLock } from './lock.js'
import { listTree, type TrackedFile } from './ls-tree.js'
import { nameBytes } from './shown-name.js'
import type { Place } from './store.js'
import { writeWhole } from './write-whole.js'

/** A worktree in use: its lease is held until `release`. */
export type Worktree = { path: string; cached: boolean; release(): void }

/** What `COMMIT.ready` says. */
export type Ready = { v: 1; commit: string; tree: string; files: number; bytes: number }

/**
 * The files of a commit under the store, made once, shared by every process that asks: `git worktree add` without files under the repository's lock (two at
 * once on one repository fail: `failed to read …/commondir`), the checkout outside of it, then the ready mark. A half-made one is removed and made again.
 *
 * The commit must be in the bare clone (else GitFailure E_STORE); FatalError E_WRITE when the disk does not take the files. A lease is taken before looking, so that a `prune` at the same moment either sees it or has removed the mark.
 */
export async function checkoutTree(place: Place, commit: string, tree: string, signal?: AbortSignal): Promise<Worktree> {
  const path = join(place.trees, commit)
  makeDirectory(place.trees)
  const release = leaseTree(path)
  try {
    const cached = readyTree(path) !== undefined || (await withLock(`${path}.lock`, () => adoptOrMake(place, commit, tree, signal), signal))
    return { path, cached, release }
  } catch (error) {
    release()
    throw error
  }
}

/** What the ready mark says of a complete worktree, undefined for any other. Notes the use: the mark's time tells `prune` how long nobody came. */
export function readyTree(path: string): Ready | undefined {
  const ready = readMark(path)
  if (ready === undefined || !existsSync(join(path, '.git'))) return undefined
  noteUse(`${path}.ready`)
  return ready
}

/** What a ready mark says; undefined where there is none, or one that a power failure cut. */
export function readMark(path: string): Ready | undefined {
  try {
    return JSON.parse(readFileSync(`${path}.ready`, 'utf8')) as Ready
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** To the minute. A time ahead of the clock, which was set back since, is corrected too; on a read-only disk the use is not noted. */
function noteUse(mark: string): void {
  const now = Date.now() / 1000
  try {
    if (Math.abs(statSync(mark).mtimeMs / 1000 - now) > 60) utimesSync(mark, now, now)
  } catch {}
}

/** True: another process finished it while we waited. */
async function adoptOrMake(place: Place, commit: string, tree: string, signal?: AbortSignal): Promise<boolean> {
  const path = join(place.trees, commit)
  if (readyTree(path)) return true
  await withLock(
    place.lock,
    async () => {
      const gone = await unlist(place, path)
      const add = ['worktree', 'add', '--no-checkout', '--detach', path, commit]
      await administration(place.bare, signal ?? new AbortController().signal)
        .raw(add)
        .catch(error => {
          signal?.throwIfAborted()
          throw gitFailure((error as Error).message, { bare: place.bare, cwd: path })
        })
      if (gone) await rm(gone, { recursive: true, force: true })
    },
    signal,
  )
  const files = await listTree(place.bare, tree, signal)
  await writeFiles(place, path, tree, files, signal)
  const ready: Ready = { v: 1, commit, tree, files: files.length, bytes: files.reduce((sum, file) => sum + file.size, 0) }
  writeWhole(`${path}.ready`, `${JSON.stringify(ready)}\n`, { durable: true })
  return false
}

/** The index and the files of a worktree that has none yet. Git's directory is named, not looked for: a store may belong to another user. */
async function writeFiles(place: Place, path: string, tree: string, files: TrackedFile[], signal?: AbortSignal): Promise<void> {
  const at = { bare: join(place.bare, 'worktrees', basename(path)), cwd: path }
  const options = signal ? { signal } : {}
  const here = `--work-tree=${path}`
  try {
    await git(at, [here, 'read-tree', tree], options)
  } catch (error) {
    // A tree with `.git` entries cannot be read as a whole: take what may be checked out.
    if (!(error instanceof GitFailure) || !error.said.includes('invalid path')) throw error
    const lines = files.flatMap(file => [
      Buffer.from(`${file.executable ? '100755' : '100644'} ${file.oid}\t`),
      nameBytes(file.path),
      Buffer.from([0]),
    ])
    await git(at, [here, 'update-index', '-z', '--index-info'], { ...options, input: Buffer.concat(lines) })
  }
  await git(at, [here, 'checkout-index', '--all', '--index', '--quiet'], options)
}

/**
 * Takes a worktree out of use, and out of git's list, and says where its files are, to be deleted when there is time; undefined if it had none. The
 * repository's lock must be held: `worktree prune` would take an entry that is just being made for a dead one.
 */
export async function unlist(place: Place, path: string): Promise<string | undefined> {
  for (const mark of ['ready', 'unmarked']) await writing(`${path}.${mark}`, () => rm(`${path}.${mark}`, { force: true }))
  const gone = existsSync(path) ? temporaryName(`${path}.gone`) : undefined
  if (gone) await writing(path, () => rename(path, gone))
  const entry = join(place.bare, 'worktrees', basename(path))
  if (existsSync(entry)) {
    // `worktree add` locks the entry while it makes it, and what was killed in the middle stays locked: git would neither prune nor replace it.
    await writing(entry, () => rm(join(entry, 'locked'), { force: true }))
    await git({ bare: place.bare }, ['worktree', 'prune', '--expire', 'now'])
  }
  return gone
}
