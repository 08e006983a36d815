import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { at, until } from '../pipeline/proc.js'
import { random } from '../property/generate.js'
import { type Ground, prepareGround, runPipe, type Victim, victims } from './on-policy-pipe.js'
import { committedIn, differences, type Outcome, outcomeOf } from './outcome.js'
import { type Trial, tableOf } from './table.js'

/**
 * Kills the stages of an on-policy pipe at random moments, runs the same command again, and compares what is there then with an uninterrupted run (stream
 * contract, "On-policy"). Prints a table, and as the last line `N passed, N failed`.
 *
 *     npm run test:kill -- [--kills 30] [--lags 0,2] [--victims rollout,reward,train,all] [--steps 5] [--late 1] [--jobs 2] [--seed 1]
 *
 * `--kills` of each stage at each lag; `--late` of them are run again after 70 s, when the heartbeat of the dead trainer is older than its readers' patience.
 */
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '30' },
    lags: { type: 'string', default: '0,2' },
    victims: { type: 'string', default: victims.join(',') },
    steps: { type: 'string', default: '5' },
    late: { type: 'string', default: '1' },
    jobs: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    seed: { type: 'string', default: '1' },
  },
})
const kills = Number(values.kills)
const lateMs = 70_000
/** How long children may take to see that their parent has died. */
const graceSeconds = 5

const dir = mkdtempSync(join(tmpdir(), 'cg-kill-'))
const ground = await prepareGround(dir, Number(values.steps))
const lags = values.lags.split(',').map(Number)
const wholes = new Map<number, { outcome: Outcome; seconds: number }>()
for (const lag of lags) {
  const place = join(dir, `whole-${lag}`)
  const { status, stdout, stderr, seconds } = await runPipe(ground, place, lag)
  if (status !== 0) throw new Error(`the uninterrupted pipe ended with ${status}:\n${stderr}`)
  wholes.set(lag, { outcome: outcomeOf(place, stdout), seconds })
  process.stdout.write(`lag ${lag}, uninterrupted: ${ground.steps} steps in ${seconds.toFixed(1)} s\n`)
}

type Wanted = { lag: number; victim: Victim; n: number }
const chosen = victims.filter(victim => values.victims.split(',').includes(victim))
const wanted: Wanted[] = lags.flatMap(lag => chosen.flatMap(victim => Array.from({ length: kills }, (_, n) => ({ lag, victim, n }))))
const trials: Trial[] = []
await Promise.all(
  Array.from({ length: Number(values.jobs) }, async () => {
    for (let next = wanted.shift(); next; next = wanted.shift()) {
      const trial = await attempt(ground, next)
      trials.push(trial)
      if (trial.wrong.length > 0) process.stdout.write(`failed: ${trial.name}: ${trial.wrong.join('; ')}\n`)
    }
  }),
)
const failed = trials.filter(({ wrong }) => wrong.length > 0).length
process.stdout.write(`${tableOf(trials)}${trials.length - failed} passed, ${failed} failed\n`)
if (failed === 0) rmSync(dir, { recursive: true, force: true })
else process.stdout.write(`what they left is in ${dir}\n${trials.length - failed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1

/** One kill that struck a living process, and the rerun. */
async function attempt(ground: Ground, { lag, victim, n }: Wanted): Promise<Trial> {
  const whole = wholes.get(lag)!
  const draw = random(Number(values.seed) * 1_000_003 + lag * 10_007 + victims.indexOf(victim) * 1009 + n)
  for (let tries = 0; ; tries++) {
    const version = draw.below(ground.steps + 1) - 1
    const afterMs = draw.below(Math.ceil((1300 * whole.seconds) / (ground.steps + 1)))
    const name = `lag ${lag}, ${victim} killed ${afterMs} ms after ${version < 0 ? 'the start' : `version ${version}`} (${n}.${tries})`
    const place = join(dir, `${lag}-${victim}-${n}-${tries}`)
    const killed = await runPipe(ground, place, lag, { victim, version, afterMs })
    if (!killed.struck && tries < 20) continue // it had not begun, or had ended
    const wrong: string[] = []
    if (!killed.struck) wrong.push('never alive when it was to be killed')
    if (killed.hung) wrong.push('the killed pipe hangs')
    if (killed.status === 0) wrong.push('the killed pipe ended with status 0')
    if (!(await until(() => at(place).length === 0, graceSeconds))) wrong.push(`left running: ${at(place).map(({ words }) => words)}`)
    const committed = Math.max(0, committedIn(place))

    const late = n < Number(values.late)
    if (late) await sleep(lateMs)
    const again = await runPipe(ground, place, lag)
    if (again.hung) wrong.push('the rerun hangs')
    if (again.status !== 0) wrong.push(`the rerun ended with ${again.status}: ${again.stderr.trim().replaceAll('\n', ' / ')}`)
    else wrong.push(...differences(whole.outcome, outcomeOf(place, again.stdout)))
    if (wrong.length === 0) rmSync(place, { recursive: true, force: true })
    const cached = Number(/cg-rollout: .* (\d+) cached/.exec(again.stderr)?.[1] ?? 0)
    return { name, lag, victim, late, committed, redone: ground.steps - committed, cached, noticed: killed.noticed, wrong }
  }
}
