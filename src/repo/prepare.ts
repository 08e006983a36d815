import { join } from 'node:path'
import type { Worktree as WorktreeFacts } from '../record/schema.js'
import { checkoutTree, readyTree } from './checkout.js'
import { bareClone } from './clone.js'
import { fullCommit, treeOfCommit } from './commit.js'
import { sourceOf } from './source.js'
import { placeOf } from './store.js'

export type PrepareOptions = {
  store: string
  /** `--source` template; undefined: GitHub. */
  source?: string
  /** Write the commit's files; without, only its objects are made sure of. */
  checkout: boolean
  timeoutMs: number
  gitConfig: boolean
  signal?: AbortSignal
}

/** A commit made readable: what the record says of it, whether all of it was there already, and the end of its lease. */
export type Prepared = { worktree: WorktreeFacts; cached: boolean; release(): void }

/**
 * Makes one commit of one repository readable: bare clone, commit, files. What is there already is left as it is.
 *
 * Throws RecordFault E_REPO, E_COMMIT, E_SOURCE, E_CLONE, E_CLONE_TIMEOUT, E_FETCH, E_COMMIT_MISSING, E_STORE, E_LOCK.
 */
export async function prepare(repo: string, baseCommit: string, options: PrepareOptions): Promise<Prepared> {
  const place = placeOf(options.store, repo)
  const commit = fullCommit(baseCommit)
  const access = {
    source: sourceOf(repo, options.source),
    timeoutMs: options.timeoutMs,
    gitConfig: options.gitConfig,
    ...(options.signal ? { signal: options.signal } : {}),
  }
  const cloned = await bareClone(place, access)
  const known = options.checkout && cloned ? readyTree(join(place.trees, commit)) : undefined
  const tree = known?.tree ?? (await treeOfCommit(place, commit, access))
  const facts = { commit, tree, bare: place.bare }
  if (!options.checkout) return { worktree: facts, cached: cloned, release: () => {} }
  const { path, cached, release } = await checkoutTree(place, commit, tree, options.signal)
  return { worktree: { ...facts, path }, cached, release }
}
