import { join } from 'node:path'
import { prepare } from '#cg/repo/prepare.js'
import type { Tree } from '#cg/tools/tree.js'
import { worktreeTree } from '#cg/tools/worktree-tree.js'
import { type Change, makeRepository, options, scratch } from '../repo/make-repository.js'

/** A tree of the given files, its directory, and the same tree searched by ripgrep only. */
export async function treeOf(
  t: { teardown(work: () => void): unknown },
  ...changes: Change[]
): Promise<{ tree: Tree; slow: Tree; path: string; bare: string; source: string; commits: string[] }> {
  const dir = scratch(t)
  const source = join(dir, 'src')
  return { ...(await preparedTree(dir, source, makeRepository(source, changes))), source }
}

/** The last of some commits of a repository as a tree. */
export async function preparedTree(
  dir: string,
  source: string,
  commits: string[],
): Promise<{ tree: Tree; slow: Tree; path: string; bare: string; commits: string[] }> {
  const { worktree, release } = await prepare('acme/lib', commits.at(-1)!, options(join(dir, 'store'), source))
  release()
  const at = { path: worktree.path!, bare: worktree.bare!, tree: worktree.tree }
  return { tree: await worktreeTree(at), slow: await worktreeTree({ ...at, scanBytes: 0 }), path: at.path, bare: at.bare, commits }
}
