import { UsageError } from '../record/fault.js'
import { type ListedTree, listTrees } from '../repo/list.js'
import { pruneTree } from '../repo/prune.js'
import { storeDir } from '../repo/store.js'
import { sweepStore } from '../repo/sweep.js'
import { evictCache } from '../store/evict.js'
import { type Context, command } from './command.js'
import { type OptionValues, option } from './options.js'
import { ageSeconds, counted, sizeWords, storeOption } from './worktree-options.js'

const options = {
  store: storeOption,
  'older-than': option.string(undefined, 'what was not used for this long, e.g. 30d, 12h', {
    metavar: 'AGE',
    check: age => (ageSeconds(age) === undefined ? 'is not an age: write a number and s, m, h, d or w' : undefined),
  }),
  all: option.flag('every worktree that nobody uses'),
  results: option.flag('also evict results from the cache, by the same age'),
  'max-results': option.number(undefined, 'with --results, keep at most this much, the longest unused go first', { metavar: 'MB', min: 0 }),
}

export default command({
  name: 'cg-worktree prune',
  about: 'remove worktrees that nobody uses',
  notes: [
    'A worktree that a running process uses is never removed. Bare clones stay, so a tree can be made again without a network.',
    '--dry-run says what would go.',
  ],
  reads: [],
  writes: [],
  standalone: true,
  options,
  examples: [
    ['what was not used for a month', 'cg-worktree prune --older-than 30d'],
    ['everything, results too', 'cg-worktree prune --all --results'],
    ['what would go', 'cg-worktree prune --older-than 12h --dry-run'],
  ],

  async *run(_, options, context) {
    const chosen = choose(options)
    await sweepStore(storeDir(options.store))
    let removed = 0
    let bytes = 0
    for (const [i, tree] of chosen.entries()) {
      context.progress(i, chosen.length, 'worktrees')
      if (!(await pruneTree(tree))) continue
      removed++
      bytes += tree.ready?.bytes ?? 0
      context.detail(`removed ${tree.path}`)
    }
    context.say(
      `${counted(removed, 'worktree')} removed, ${sizeWords(bytes)}${removed < chosen.length ? `; ${chosen.length - removed} in use` : ''}`,
    )
    if (options.results) context.say(`${evicted(options, context, false)} evicted`)
    yield* []
  },

  async plan(options, context) {
    const chosen = choose(options)
    return [
      ...chosen.map(({ place, commit, leases }) => `${leases.length > 0 ? 'in use, stays' : 'would go'}: ${place.repo} ${commit}`),
      ...(options.results ? [`${evicted(options, context, true)} would be evicted`] : []),
    ]
  },
})

function choose(values: OptionValues<typeof options>): ListedTree[] {
  const age = values['older-than'] === undefined ? undefined : ageSeconds(values['older-than'])!
  if (age === undefined && !values.all) throw new UsageError('say which: --older-than AGE, or --all')
  if (age !== undefined && values.all) throw new UsageError('--all contradicts --older-than: leave one out')
  const before = Date.now() - (age ?? 0) * 1000
  return listTrees(storeDir(values.store)).filter(tree => values.all || tree.lastUse.getTime() < before)
}

function evicted(values: OptionValues<typeof options>, { cacheFile, warn }: Context, dryRun: boolean): string {
  const olderThan = values.all ? -1 : ageSeconds(values['older-than']!)!
  const { rows, bytes } = evictCache(cacheFile, {
    olderThan,
    ...(values['max-results'] === undefined ? {} : { maxBytes: values['max-results'] * 1e6 }),
    dryRun,
    warn,
  })
  return `${counted(rows, 'result')}, ${sizeWords(bytes)}`
}
