import type { Worktree } from '../record/schema.js'
import { localRepository } from '../repo/local.js'
import type { Tree } from './tree.js'
import { worktreeTree } from './worktree-tree.js'

/** HEAD of a local repository. `uncommitted`: files that are changed or not tracked, which the tree does not show; the caller says so. */
export type RepositoryTree = { tree: Tree; repo: string; commit: string; worktree: Worktree; uncommitted: number }

/**
 * The tree of `--repo PATH`: HEAD of the repository at or above it, through a bare clone of our own in `store`; leased until the process ends.
 *
 * Throws RecordFault E_REPOSITORY if there is none, or it has no commit.
 */
export async function repositoryTree(path: string, store: string, signal?: AbortSignal): Promise<RepositoryTree> {
  const { repo, commit, worktree, uncommitted } = await localRepository(path, store, signal)
  const tree = await worktreeTree({ path: worktree.path!, bare: worktree.bare!, tree: worktree.tree }, signal)
  return { tree, repo, commit, worktree, uncommitted }
}
