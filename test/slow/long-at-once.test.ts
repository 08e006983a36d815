import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rollOut, testBounds, timeless } from '../pipeline/at-once.js'
import { printFigures } from '../pipeline/flat.js'
import { makeMicroWork, microEnv, onPolicyLine } from '../pipeline/micro-run.js'
import { records, scratch } from '../pipeline/process.js'
import { watchPipe } from '../pipeline/watch-pipe.js'

// 64 rollouts at once in one process, by groups and by instances, of a model and of the script; each compared with one at a time.
t.setTimeout(3_600_000)
const { dir } = scratch(t)
makeMicroWork(dir, 64)
const native = `--policy native:${join(dir, 'model')} --threads 1`

for (const [name, args] of [
  ['of a model: 64 instances, one sample each', `${native} -n 1`],
  ['of a model: 8 samples of each, 8 instances at once', `${native} -n 8`],
  ['of the script', '--policy lexical -n 1'],
] as const)
  t.test(name, async t => {
    const together = await rollOut(dir, `${args} -j ${args.endsWith('8') ? 8 : 64} --concurrency 64`)
    printFigures(`64 rollouts at once, ${name}`, together)
    t.equal(together.status, 0, together.stderr)
    testBounds(t, together)
    const alone = await rollOut(dir, `${args} -j 1 --concurrency 1`)
    t.equal(alone.status, 0, alone.stderr)
    t.same(timeless(together.stdout), timeless(alone.stdout))
  })

t.test('on-policy: 8 prompts of 8 rollouts a step', async t => {
  const steps = async (name: string, concurrency: number) => {
    const line = onPolicyLine(dir, name, 8, { prompts: 8, samples: 8, concurrency })
    const watched = await watchPipe(line, { env: microEnv(dir), everyMs: 50 })
    printFigures(`8 steps of 64 rollouts, ${concurrency} at once`, watched)
    t.equal(watched.status, 0, watched.stderr)
    testBounds(t, watched)
    return timeless(readFileSync(`${join(dir, name)}.steps`, 'utf8')).filter(({ kind }) => kind === 'step')
  }
  const together = await steps('together', 64)
  t.equal(together.length, 8)
  t.same(await steps('alone', 1), together)
  const tensors = (name: string) => readFileSync(join(dir, name, 'v000008/adapter_model.safetensors'))
  t.same(tensors('alone'), tensors('together'))
  t.ok(
    records(readFileSync(join(dir, 'alone.steps'), 'utf8')).some(({ grad_norm }) => (grad_norm as number) > 0),
    'the adapter moved',
  )
})
