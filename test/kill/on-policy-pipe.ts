import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGroup } from '../pipeline/process.js'
import { makeRepository } from '../unit/repo/make-repository.js'
import { committedIn } from './outcome.js'

/** The stages that can be killed; `all` is the machine that goes down. */
export const victims = ['rollout', 'reward', 'train', 'all'] as const
export type Victim = (typeof victims)[number]

/** So many ms after a version stands, or after the start (−1): moments that do not depend on how busy the machine is. */
export type Kill = { victim: Victim; version: number; afterMs: number }

/** Where the instances of all pipes are, with worktrees in a store that they share. */
export type Ground = { dir: string; instances: string; steps: number }

/** How a pipe went. `struck`: the victim was alive when it was killed; `noticed`: seconds from then until the last stage had ended. */
export type PipeEnd = {
  status: number | null
  stdout: string
  stderr: string
  seconds: number
  struck: boolean
  noticed: number
  hung: boolean
}

/** Nothing may take longer than this to notice that a neighbour has died, in ms. */
export const patienceMs = 90_000
/** No pipe takes so long, on however busy a machine. */
const wholeMs = 900_000

/** One small repository with four issues, and its worktree. */
export async function prepareGround(dir: string, steps: number): Promise<Ground> {
  const [commit] = makeRepository(join(dir, 'mirror/lib'), [
    {
      'lib/routes.py': 'class Router:\n    def add_route(self, path):\n        self.table[path] = 1\n',
      'lib/config.py': 'def load_config(name):\n    return open(name).read()\n',
      'lib/queue.py': 'class Queue:\n    def retry_job(self, job):\n        self.jobs.append(job)\n',
      'tests/test_routes.py': 'from lib.routes import Router\n',
    },
  ])
  const issues: [file: string, text: string][] = [
    ['lib/routes.py', 'add_route raises KeyError for an empty path'],
    ['lib/config.py', 'load_config("a") leaves the file open'],
    ['lib/queue.py', 'retry_job appends the job twice'],
    ['lib/routes.py', 'Router.table is shared by all routers'],
  ]
  const rows = issues.map(([file, problem_statement], i) => ({
    instance_id: `i${i}`,
    repo: 'acme/lib',
    base_commit: commit,
    problem_statement,
    target: { gold_rules: 'codegrep/1', files: [{ path: file }] },
  }))
  const tasks = join(dir, 'tasks.ndjson')
  writeFileSync(tasks, rows.map(row => `${JSON.stringify(row)}\n`).join(''))
  const instances = join(dir, 'instances.ndjson')
  const made = await bash(`bin/cg-worktree -q --source ${join(dir, 'mirror/{name}')} -o ${instances} ${tasks}`, dir, join(dir, 'cache.db'))
    .done
  if (made.status !== 0) throw new Error(made.stderr)
  return { dir, instances, steps }
}

/**
 * `cg-rollout | tee | cg-reward | cg-train` on a directory of its own: the run in `place`/run, the adapter in `place`/out, what was sampled in
 * `place`/sampled.ndjson, the cache in `place`/cache.db. With `lag` 0 the trainer also measures: that pipe is nested in it.
 *
 * `kill` ends a stage by SIGKILL.
 */
export async function runPipe(ground: Ground, place: string, lag: number, kill?: Kill): Promise<PipeEnd> {
  mkdirSync(place, { recursive: true })
  const began = performance.now()
  const { group, done } = bash(pipeline(ground, place, lag), ground.dir, join(place, 'cache.db'))
  let struck = false
  let struckAt = began
  let ended = false
  let hung = false
  const giveUp = (ms: number) =>
    setTimeout(() => {
      hung = true
      signal(-group)
    }, ms)
  let limit = giveUp(wholeMs)
  const strike = async ({ victim, version, afterMs }: Kill) => {
    while (version >= 0 && committedIn(place) < version && !ended) await sleep(5)
    await sleep(afterMs)
    struck = victim === 'all' ? signal(-group) : signal(pidOf(place, victim))
    struckAt = performance.now()
    clearTimeout(limit)
    limit = giveUp(patienceMs)
  }
  const killing = kill && strike(kill)
  const end = await done
  const now = performance.now()
  ended = true
  await killing
  clearTimeout(limit)
  return { ...end, seconds: (now - began) / 1000, struck, noticed: Math.max(0, now - struckAt) / 1000, hung }
}

function pipeline({ instances, steps }: Ground, place: string, lag: number): string {
  const run = join(place, 'run')
  const stage = (name: string, command: string) => `bash -c 'echo $$ > ${place}/${name}.pid; exec ${command}'`
  const measured = lag === 0 ? `--eval-every 3 --eval-file ${instances}` : ''
  return [
    `rm -f ${place}/*.pid`,
    [
      stage('rollout', `bin/cg-rollout --policy native:fixtures/model --on-policy ${run} --max-tokens 100 --max-turns 2 ${instances}`),
      `tee ${place}/sampled.ndjson`,
      stage('reward', 'bin/cg-reward'),
      stage(
        'train',
        `bin/cg-train grpo --model fixtures/model --publish ${run} --out ${place}/out --resume --prompts-per-step 2 -n 4 --steps ${steps} --lag ${lag} ` +
          `--lr 1e-3 --lora-rank 4 --kl 0.01 --threads 1 ${measured}`,
      ),
    ].join(' | '),
  ].join('; ')
}

/** Runs a line in a process group of its own, away from the user's cache and store. */
function bash(line: string, dir: string, cache: string) {
  return startGroup(line, { CG_CACHE: cache, CG_STORE: join(dir, 'store') })
}

function pidOf(place: string, stage: string): number | undefined {
  try {
    return Number(readFileSync(join(place, `${stage}.pid`), 'utf8')) || undefined
  } catch {
    return undefined // not begun yet
  }
}

/** Was there somebody to kill? */
function signal(pid: number | undefined): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}
