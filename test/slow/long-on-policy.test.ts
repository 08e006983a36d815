import { join } from 'node:path'
import t from 'tap'
import { printFigures, testFlat } from '../pipeline/flat.js'
import { makeMicroWork, microEnv, onPolicyLine, onPolicyStages, sizeOf } from '../pipeline/micro-run.js'
import { scratch } from '../pipeline/process.js'
import { testRunDirectory } from '../pipeline/test-run-directory.js'
import { watchPipe } from '../pipeline/watch-pipe.js'

// 1,000 steps of 2 prompts × 4 rollouts with a model of some 10,000 parameters: minutes.
t.setTimeout(3_600_000)
const { dir } = scratch(t)
makeMicroWork(dir, 24)
const count = 1000

t.test('1,000 on-policy steps: processes and run directory stay as they are', async t => {
  const run = join(dir, 'run')
  const sizes: { files: number; bytes: number }[] = []
  const also = () => {
    try {
      sizes.push(sizeOf(run))
    } catch {
      // a version went while it was looked at, or the run has not begun
    }
  }
  const watched = await watchPipe(onPolicyLine(dir, 'run', count), { env: microEnv(dir), everyMs: 500, also })
  printFigures('1,000 on-policy steps of a micro model', watched)
  testFlat(t, watched, onPolicyStages, { share: 1.15 })
  const steps = testRunDirectory(t, run, count)

  const half = sizes.length >> 1
  const most = (part: typeof sizes, what: 'files' | 'bytes') => Math.max(...part.map(size => size[what]))
  const [early, late] = [sizes.slice(half >> 2, half), sizes.slice(half)]
  const least = (part: typeof sizes) => Math.min(...part.map(size => size.bytes))
  t.ok(most(late, 'files') <= 32, 'three versions of seven files, one in the making, and the directory’s own')
  t.ok(least(late) < 1.02 * least(early), `${least(early)} bytes early, ${least(late)} late, without steps.ndjson`)
  const log = Buffer.byteLength(steps.map(step => `${JSON.stringify(step)}\n`).join(''))
  process.stderr.write(
    `  run directory: at most ${most(early, 'files')} files early, ${most(late, 'files')} late; at least ${least(early)} and ${least(late)} bytes ` +
      `without steps.ndjson, which has ${Math.round(log / count)} bytes a step\n`,
  )
})
