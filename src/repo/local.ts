import { createHash } from 'node:crypto'
import { mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { RecordFault } from '../record/fault.js'
import type { Worktree } from '../record/schema.js'
import { writing } from '../record/write-failure.js'
import { checkoutTree } from './checkout.js'
import { bareClone } from './clone.js'
import { treeOfCommit } from './commit.js'
import { git } from './git.js'
import { GitFailure } from './git-failure.js'
import { placeOf } from './store.js'

/** HEAD of a repository on this machine. `uncommitted`: paths that differ from it or are not tracked, and so are not seen. */
export type LocalRepository = { repo: string; commit: string; worktree: Worktree; uncommitted: number; release(): void }

/**
 * Makes HEAD of the repository at `path` (or above it) readable through a bare clone of our own; the repository itself is only fetched from.
 *
 * Throws RecordFault E_REPOSITORY if there is none or it has no commit.
 */
export async function localRepository(path: string, store: string, signal?: AbortSignal): Promise<LocalRepository> {
  const [gitDir, commit, top] = await whereIs(path)
  const name =
    basename(top ?? gitDir.replace(/\/\.git$/, ''), '.git')
      .replace(/[^A-Za-z0-9_.-]/g, '_')
      .replace(/^[.-]+/, '') || 'repository'
  const key = createHash('sha256').update(realpathSync(gitDir)).digest('hex').slice(0, 12)
  const place = placeOf(store, `local/${name}-${key}`)
  const access = {
    source: { url: gitDir, shown: gitDir, userGiven: true },
    timeoutMs: 600_000,
    gitConfig: false,
    ...(signal ? { signal } : {}),
  }
  await bareClone(place, access)
  const tree = await treeOfCommit(place, commit, access)
  const { path: files, release } = await checkoutTree(place, commit, tree, signal)
  const uncommitted = top ? await countUncommitted(place.bare, commit, top) : 0
  return { repo: name, commit, worktree: { commit, tree, path: files, bare: place.bare }, uncommitted, release }
}

async function whereIs(path: string): Promise<[gitDir: string, commit: string, top: string | undefined]> {
  try {
    const out = await git({ cwd: path }, [
      'rev-parse',
      '--path-format=absolute',
      '--git-common-dir',
      '--is-inside-work-tree',
      '--verify',
      '--end-of-options',
      'HEAD^{commit}',
    ])
    const [gitDir, inside, commit] = out.toString().trimEnd().split('\n') as [string, string, string]
    const top =
      inside === 'true'
        ? (await git({ cwd: path }, ['rev-parse', '--path-format=absolute', '--show-toplevel'])).toString().trimEnd()
        : undefined
    return [gitDir, commit, top]
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    throw new RecordFault('E_REPOSITORY', `${path}: ${reason(error.said)}`)
  }
}

function reason(said: string): string {
  if (/not a git repository|ENOENT|ENOTDIR|does not exist/.test(said))
    return 'not a git repository: give the directory of a clone (or git init, add, commit)'
  if (/Needed a single revision/.test(said)) return 'it has no commit yet: commit something first'
  return `${said.replace(/^fatal: /, '').replaceAll('\n', ' ')}`
}

/** The user's files against HEAD, by our own configuration and an index of our own: theirs could name programs, and stays as it is. */
async function countUncommitted(bare: string, commit: string, top: string): Promise<number> {
  const scratch = writing(`temporary directory ${tmpdir()} ($TMPDIR)`, () => mkdtempSync(join(tmpdir(), 'cg-status-')))
  try {
    const at = { bare, cwd: top, env: { GIT_INDEX_FILE: join(scratch, 'index'), GIT_WORK_TREE: top } }
    const own = ['-c', 'core.bare=false', '-c', 'core.symlinks=true']
    await git(at, [...own, 'read-tree', commit])
    const out = await git(at, [
      ...own,
      'status',
      '--porcelain',
      '-z',
      '--no-renames',
      '--ignore-submodules=all',
      '--untracked-files=normal',
    ])
    // `XY SP path NUL` each; staged changes cannot occur, the index is HEAD.
    return out.toString('latin1').split('\0').length - 1
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
