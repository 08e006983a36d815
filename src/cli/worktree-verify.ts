import { FatalError, RecordFault } from '../record/fault.js'
import { checkoutTree } from '../repo/checkout.js'
import { type ListedTree, listTrees } from '../repo/list.js'
import { listTree } from '../repo/ls-tree.js'
import { pruneTree } from '../repo/prune.js'
import { isCloned, storeDir } from '../repo/store.js'
import { verifyTree } from '../repo/verify.js'
import { command } from './command.js'
import { option } from './options.js'
import { printed } from './print-lines.js'
import { counted, storeOption } from './worktree-options.js'

export default command({
  name: 'cg-worktree verify',
  about: 'compare every worktree in the store with its commit, byte for byte',
  notes: ['Exit status 1 if a worktree is damaged and was not repaired. One that is in use is not repaired.'],
  reads: [],
  writes: [],
  standalone: true,
  options: { store: storeOption, fix: option.flag('make damaged worktrees again') },
  examples: [
    ['look', 'cg-worktree verify'],
    ['and repair', 'cg-worktree verify --fix'],
  ],

  async *run(_, options, context) {
    const trees = listTrees(storeDir(options.store))
    let damaged = 0
    for (const [i, tree] of trees.entries()) {
      context.progress(i, trees.length, 'worktrees')
      const problems = await verifyTree(tree)
      const fixed = problems.length > 0 && options.fix && (await repair(tree))
      if (problems.length > 0 && !fixed) damaged++
      const { place, commit, path } = tree
      if (!context.terminal)
        yield printed({ kind: 'tree', v: 1, repo: place.repo, commit, path, ok: problems.length === 0 || fixed, fixed, problems })
      else if (problems.length > 0)
        yield printed(
          `${place.repo} ${commit.slice(0, 12)}: ${problems.slice(0, 3).join('; ')}${problems.length > 3 ? ` and ${problems.length - 3} more` : ''}${fixed ? ': repaired' : ''}`,
        )
      if (context.signal.aborted) return
    }
    if (damaged > 0)
      throw new FatalError(
        'E_WORKTREE',
        `${damaged} of ${counted(trees.length, 'worktree')} damaged: ${options.fix ? 'in use, or the clone is gone or damaged: run cg-worktree again' : 'repair with --fix'}`,
      )
    context.say(`${counted(trees.length, 'worktree')} as their commits say`)
  },
})

/** False: somebody uses it, or its commit cannot be read any more; then the files stay, they may be all that is left. */
async function repair(tree: ListedTree): Promise<boolean> {
  if (!tree.ready || !(await isReadable(tree)) || !(await pruneTree(tree))) return false
  const { release } = await checkoutTree(tree.place, tree.commit, tree.ready.tree)
  release()
  return (await verifyTree(tree)).length === 0
}

/** Can the files of its commit be written again from the clone? */
async function isReadable({ place, ready }: ListedTree): Promise<boolean> {
  try {
    if (!isCloned(place)) return false
    await listTree(place.bare, ready!.tree)
    return true
  } catch (error) {
    if (error instanceof RecordFault) return false
    throw error
  }
}
