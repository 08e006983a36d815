import t from 'tap'
import { printFigures, testFlat } from '../pipeline/flat.js'
import { instanceStages, makeRows, scoreRows, testScores } from '../pipeline/instance-pipe.js'
import { scratch } from '../pipeline/process.js'

// 10,000 rows about 2,000 commits of four repositories: minutes, most of them for making the worktrees. NODE_OPTIONS of the stages: see watchPipe.
t.setTimeout(3_600_000)
const { dir } = scratch(t)
makeRows(dir, 500, 10_000)
let first: string
// A stage keeps 0.4 kB of each instance (which pass it is of, that its group was closed) and of each tree (its lease): V8 takes twice that.
const share = 1.25

t.test('10,000 instances without a cache', async t => {
  const watched = await scoreRows(dir, '--no-cache', 500)
  printFigures('10,000 instances, worktrees to be made, no cache', watched)
  testFlat(t, watched, instanceStages, { share })
  first = testScores(t, dir)
})

t.test('with an empty cache: the same', async t => {
  const watched = await scoreRows(dir, '', 250)
  printFigures('10,000 instances, an empty cache', watched)
  testFlat(t, watched, instanceStages, { share, cache: true })
  t.equal(testScores(t, dir), first)
})

t.test('with all of it cached: the same', async t => {
  const watched = await scoreRows(dir, '', 100)
  printFigures('10,000 instances, all cached', watched)
  testFlat(t, watched, instanceStages, { share, cache: true })
  t.equal(testScores(t, dir), first)
  for (const stage of ['worktree', 'mine gold', 'rollout', 'reward', 'eval score'])
    t.match(watched.stderr, `cg-${stage}: 10000 in, 10000 out, 10000 cached, 0 faults`)
})
