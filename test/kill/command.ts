import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { numbers } from '../native/setup.js'
import { alive, at, slay, until } from '../pipeline/proc.js'
import { collect, plainNode, type Result } from '../pipeline/process.js'
import { contents, differences, type Job, timeless } from './command-job.js'

/** What came of killing one command many times. */
export type Outcome = {
  name: string
  /** An uninterrupted run, in ms. */
  usualMs: number
  killed: number
  /** The run was over before its kill. */
  ended: number
  /** Reruns that found finished work of the killed run, and how many records of it. */
  found: number
  cached: number
  /** Files that a killed run left and its rerun did not take away, by kind. */
  left: Record<string, number>
  failures: string[]
}

/**
 * What a process that is gone may leave behind when it is run again. Anything else is a failure: its next run has to take it away. Leases stay when the rerun has
 * no use for a worktree, all being in the cache: they count for nothing, and the next one that has removes them.
 */
const leftovers: [kind: string, name: RegExp][] = [
  ['temporary file', /\.\d+\.tmp$|\.new(\/|$)|\.\d+\.\d+$/],
  ['lease of a dead process', /\.lease\./],
  ['temporary directory', /^tmp\/cg-/],
]

/**
 * Kills a command at random moments of its run (SIGKILL, its whole process group) and runs it again by the same words, each time from the same beginning: the
 * rerun must write what an uninterrupted run writes and leave the files that that leaves; what the killed one wrote must be a beginning of it; and no process
 * may be left. `seed` decides the moments.
 */
export async function killCommand(job: Job, place: Place, { kills, seed }: { kills: number; seed: number }): Promise<Outcome> {
  const next = numbers(seed)
  const plain = (text: string) => (job.plain ?? (same => same))(timeless(text))
  const fresh = () => {
    rmSync(place.work, { recursive: true, force: true })
    mkdirSync(`${place.work}/tmp`, { recursive: true })
    job.begin?.()
  }
  fresh()
  const begun = performance.now()
  const whole = await run(job, place)
  const usualMs = Math.round(performance.now() - begun)
  const outcome: Outcome = { name: job.name, usualMs, killed: 0, ended: 0, found: 0, cached: 0, left: {}, failures: [] }
  if (whole.status !== (job.status ?? 0)) throw new Error(`${job.name}: an uninterrupted run ended with ${whole.status}: ${whole.stderr}`)
  await job.check?.()
  const should = contents(place.work)
  const output = plain(whole.stdout)
  const usuallyCached = cachedCount(whole) // records that are alike

  for (let n = 0; n < kills; n++) {
    const after = Math.round(next() * usualMs * 1.1)
    const fail = (what: string) => outcome.failures.push(`kill ${n} of seed ${seed}, after ${after} ms: ${what}`)
    fresh()
    const killed = await run(job, place, after)
    if (killed.signal === 'SIGKILL') outcome.killed++
    else outcome.ended++
    const orphans = at(place.work)
    if (!(await until(() => alive(orphans).length === 0, 20))) fail(`it left ${alive(orphans).map(({ words }) => words)}`)
    slay(orphans)
    const written = killed.stdout.slice(0, killed.stdout.lastIndexOf('\n') + 1)

    const again = await run(job, place)
    if (again.status !== (job.status ?? 0)) fail(`the rerun ended with ${again.status}: ${again.stderr.trim()}`)
    if (plain(again.stdout) !== output) fail('the rerun wrote something else')
    if (!plain(again.stdout).startsWith(plain(written))) fail('what the killed run wrote is no beginning of it')
    if (job.unrepeatable && !again.stdout.startsWith(written)) fail('the rerun did not keep what the killed run had written')
    await job.check?.().catch(error => fail((error as Error).message))
    const { missing, extra, changed } = differences(contents(place.work), should)
    if (missing.length + changed.length > 0) fail(`missing: ${missing}; changed: ${changed}`)
    for (const name of extra) {
      const kind = leftovers.find(([, pattern]) => pattern.test(name))?.[0]
      if (kind === undefined) fail(`it left ${name}`)
      else outcome.left[kind] = (outcome.left[kind] ?? 0) + 1
    }
    const cached = cachedCount(again) - usuallyCached
    if (cached > 0) outcome.found++
    outcome.cached += cached
  }
  return outcome
}

/** Where a job works, and the environment of its commands. */
export type Place = { work: string; env: NodeJS.ProcessEnv }

const cachedCount = ({ stderr }: Result) => Number(/(\d+) cached/.exec(stderr)?.[1] ?? 0)

async function run({ command: [script, ...args], input = '' }: Job, { env }: Place, killAfter?: number): Promise<Result> {
  const child = spawn(plainNode[0], [...plainNode.slice(1), script, ...args], { env, detached: true })
  const { done } = collect(child)
  child.stdin.on('error', () => {}).end(input)
  if (killAfter === undefined) return done
  await Promise.race([sleep(killAfter), done])
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch {
    // it has ended
  }
  return done
}

/** The table at the end. */
export function summary(outcomes: readonly Outcome[]): string {
  const rows = [
    ['command', 'ms', 'killed', 'ended before', 'reruns that found work', 'records of it', 'left behind', 'failures'],
    ...outcomes.map(({ name, usualMs, killed, ended, found, cached, left, failures }) => [
      name,
      ...[usualMs, killed, ended, found, cached].map(String),
      Object.entries(left).map(([kind, count]) => `${count} × ${kind}`).join(', ') || '-', // biome-ignore format: one cell
      String(failures.length),
    ]),
  ]
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map(row => row[i]!.length)))
  return rows.map(row => row.map((cell, i) => cell.padEnd(widths[i]!)).join('  ').trimEnd()).join('\n') // biome-ignore format: one line a row
}
