import { type ListedTree, listTrees } from '../repo/list.js'
import { storeDir } from '../repo/store.js'
import { command } from './command.js'
import { printed } from './print-lines.js'
import { sizeWords, storeOption } from './worktree-options.js'

export default command({
  name: 'cg-worktree list',
  about: 'list the worktrees in the store: commit, size, who uses it, last use',
  notes: ['A table on a terminal; in a pipe one JSON object a line.'],
  reads: [],
  writes: [],
  standalone: true,
  options: { store: storeOption },
  examples: [
    ['look', 'cg-worktree list'],
    ['how many bytes of files', "cg-worktree list | jq -s 'map(.bytes) | add'"],
  ],

  async *run(_, options, context) {
    const trees = listTrees(storeDir(options.store))
    if (!context.terminal) for (const tree of trees) yield printed(row(tree))
    else if (trees.length === 0) yield printed(`no worktrees in ${storeDir(options.store)}`)
    else for (const line of table(trees)) yield printed(line)
  },
})

function row({ place, path, commit, ready, lastUse, leases }: ListedTree): object {
  return {
    kind: 'tree',
    v: 1,
    repo: place.repo,
    commit,
    tree: ready?.tree ?? null,
    path,
    files: ready?.files ?? null,
    bytes: ready?.bytes ?? null,
    ready: ready !== undefined,
    leases: leases.map(({ host, pid }) => ({ host, pid })),
    last_use: lastUse.toISOString(),
  }
}

function table(trees: ListedTree[]): string[] {
  const rows = trees.map(({ place, commit, ready, lastUse, leases }) => [
    place.repo,
    commit.slice(0, 12),
    ready ? String(ready.files) : 'unfinished',
    ready ? sizeWords(ready.bytes) : '',
    lastUse.toISOString().slice(0, 16).replace('T', ' '),
    leases.map(({ pid }) => pid).join(' ') || 'free',
  ])
  const head = ['repository', 'commit', 'files', 'size', 'last use (UTC)', 'used by']
  const widths = head.map((name, i) => Math.max(name.length, ...rows.map(row => row[i]!.length)))
  return [head, ...rows].map(row =>
    row
      .map((cell, i) => (i === 2 || i === 3 ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd(),
  )
}
