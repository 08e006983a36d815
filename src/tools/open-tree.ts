import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { RecordFault } from '../record/fault.js'
import type { Worktree } from '../record/schema.js'
import { checkoutTree, readyTree } from '../repo/checkout.js'
import { fullCommit, presentTree } from '../repo/commit.js'
import { isCloned, placeOfBare } from '../repo/store.js'
import { createLimit } from './limit.js'
import type { Tree } from './tree.js'
import { worktreeTree } from './worktree-tree.js'

const opened = new Map<string, Promise<Tree>>()
/** Trees whose lists of files are kept. */
const capacity = 32
/** A step of training asks for the trees of all its prompts at once, and each takes processes to open. */
const onCore = createLimit(availableParallelism())

/**
 * The files of an instance's base commit, as `cg-worktree` prepared them; leased until the process ends.
 *
 * Files that are not there, after `--no-checkout` or `prune`, are written now: only the bare clone is needed. Of the record's facts only the clone's name is
 * believed, and only if we made that clone. Throws RecordFault E_NO_WORKTREE if the instance was never prepared on this machine, E_WORKTREE if it is damaged.
 */
export async function openTree(instance: { instance_id: string; worktree?: Worktree | undefined }, signal?: AbortSignal): Promise<Tree> {
  const { worktree } = instance
  if (!worktree?.bare)
    throw new RecordFault('E_NO_WORKTREE', `${instance.instance_id} has no worktree: put cg-worktree before this command`)
  const key = `${worktree.bare}\0${worktree.commit}`
  const known = opened.get(key)
  opened.delete(key)
  const tree = known ?? onCore(() => open(instance.instance_id, worktree, worktree.bare!, signal))
  opened.set(key, tree)
  if (opened.size > capacity) opened.delete(opened.keys().next().value!)
  if (known)
    return known.catch(() => {
      // Who asked first may have given up, and what failed for it is said of its record alone.
      signal?.throwIfAborted()
      return openTree(instance, signal)
    })
  tree.catch(() => {
    if (opened.get(key) === tree) opened.delete(key)
  })
  return tree
}

async function open(id: string, worktree: Worktree, bare: string, signal?: AbortSignal): Promise<Tree> {
  const place = placeOfBare(bare)
  if (!isCloned(place)) throw new RecordFault('E_NO_WORKTREE', `${id}: its clone ${bare} is not on this machine: run cg-worktree again`)
  const commit = fullCommit(worktree.commit)
  const tree = readyTree(join(place.trees, commit))?.tree ?? (await presentTree(place, commit, signal))
  if (tree === undefined) throw new RecordFault('E_NO_WORKTREE', `${id}: commit ${commit} is not in ${bare}: run cg-worktree again`)
  if (tree !== worktree.tree)
    throw new RecordFault('E_WORKTREE', `${id}: its record says tree ${worktree.tree}, commit ${commit} has ${tree}: run cg-worktree again`)
  const { path } = await checkoutTree(place, commit, tree, signal)
  return worktreeTree({ path, bare: place.bare, tree }, signal)
}
