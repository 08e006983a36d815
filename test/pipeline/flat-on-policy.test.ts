import { join } from 'node:path'
import t from 'tap'
import { makeMicroWork, microEnv, onPolicyLine } from './micro-run.js'
import { scratch } from './process.js'
import { testRunDirectory } from './test-run-directory.js'
import { watchPipe } from './watch-pipe.js'

// The short form of test/slow/long-on-policy.test.ts, which also looks at memory.
t.setTimeout(240_000)
const { dir } = scratch(t)
makeMicroWork(dir, 6)

t.test('20 steps leave the last two versions, the log, and no process', async t => {
  const watched = await watchPipe(onPolicyLine(dir, 'run', 20), { env: microEnv(dir), everyMs: 200 })
  t.equal(watched.status, 0, watched.stderr)
  t.equal(watched.zombies, 0, 'children are waited for')
  testRunDirectory(t, join(dir, 'run'), 20)
})
