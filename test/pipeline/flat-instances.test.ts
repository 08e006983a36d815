import t from 'tap'
import { instanceStages, makeRows, scoreRows, testScores } from './instance-pipe.js'
import { scratch } from './process.js'

// The short form of test/slow/long-instances.test.ts, which also looks at memory.
t.setTimeout(240_000)
const { dir } = scratch(t)
makeRows(dir, 12, 300)

t.test('300 instances about 48 commits come out in order and are counted; again from the cache', async t => {
  const first = await scoreRows(dir, '', 200)
  t.equal(first.status, 0, first.stderr)
  t.same([...first.stages.keys()].sort(), instanceStages.toSorted())
  t.equal(first.zombies, 0, 'children are waited for')
  const digest = testScores(t, dir)
  const again = await scoreRows(dir, '', 200)
  t.equal(again.status, 0, again.stderr)
  t.equal(testScores(t, dir), digest)
  t.match(again.stderr, 'cg-rollout: 300 in, 300 out, 300 cached, 0 faults')
})
