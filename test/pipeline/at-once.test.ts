import { join } from 'node:path'
import t from 'tap'
import { rollOut, testBounds, timeless } from './at-once.js'
import { makeMicroWork } from './micro-run.js'
import { scratch } from './process.js'

// 64 rollouts at once: 16 instances, each about a commit of its own, 4 samples each. The long form is test/slow/long-at-once.test.ts.
t.setTimeout(240_000)
const { dir } = scratch(t)
makeMicroWork(dir, 16)

t.test('64 rollouts of a model at once: what one after the other gives, and few processes', async t => {
  const args = `--policy native:${join(dir, 'model')} --threads 1 -n 4`
  const together = await rollOut(dir, `${args} -j 16 --concurrency 64`)
  t.equal(together.status, 0, together.stderr)
  testBounds(t, together)
  const alone = await rollOut(dir, `${args} -j 1 --concurrency 1`)
  t.equal(alone.status, 0, alone.stderr)
  t.same(timeless(together.stdout), timeless(alone.stdout))
  t.equal(timeless(together.stdout).filter(({ kind }) => kind === 'rollout').length, 64)
})
