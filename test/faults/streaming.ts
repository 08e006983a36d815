import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { listTrees } from '#cg/repo/list.js'
import { verifyTree } from '#cg/repo/verify.js'
import { run } from '../pipeline/process.js'
import { makeRepository } from '../unit/repo/make-repository.js'
import { type Example, rollout } from '../unit/score/example-rollout.js'
import type { Job } from './every-change.js'
import { timeless } from './listing.js'

/** What is not compared: pages and times of SQLite and git, and what an output that failed is kept as. */
const leave = /^cache\.db|\/index$|\/logs\/|\.partial$/

const scored = ['a.py', 'b.py', 'c.py'].flatMap((file, index) =>
  [file, 'd.py'].map((found, sample): Example => ({ instance: `g${index}`, group: `g${index}`, size: 2, sample, files: [found] })),
)

/** Rewards of three groups, kept in a cache and written into a file by -o. */
export const scoring: Job = {
  script: 'bin/cg-reward',
  args: dir => ['--cache', join(dir, 'cache.db'), '-o', join(dir, 'out.ndjson')],
  input: scored.map(example => `${JSON.stringify(rollout(example))}\n`).join(''),
  leave,
  check: (t, dir) => {
    if (existsSync(join(dir, 'out.ndjson')))
      t.match(lastLine(join(dir, 'out.ndjson')), /"kind":"end".*"ok":true/, 'FILE is there, so it is whole')
    const partial = join(dir, 'out.ndjson.partial')
    if (existsSync(partial)) t.notMatch(lastLine(partial), /"kind":"end".*"ok":true/, 'what was done does not say that it is all')
  },
}

/** The same to standard output: only the cache is on the disk. */
export const keeping: Job = { script: scoring.script, args: dir => ['--cache', join(dir, 'cache.db')], input: scoring.input!, leave }

/** The same to standard output, which goes into a file of the shell's. */
export const redirecting: Job = {
  ...scoring,
  args: () => ['--no-cache'],
  into: dir => join(dir, 'out.ndjson'),
  check: (t, dir) => {
    t.notMatch(lastLine(join(dir, 'out.ndjson')), /"kind":"end".*"ok":true/, 'what was written does not say that it is all')
  },
}

/** A clone and two worktrees in a store, of a repository under `mirror`. git's own writing is not reached. */
export function preparing(mirror: string): Job {
  const commits = makeRepository(join(mirror, 'lib'), [
    { 'a.py': 'v = 0\n', 'lib/b.py': 'def f():\n    return v\n' },
    { 'a.py': 'v = 1\n' },
  ])
  return {
    script: 'bin/cg-worktree',
    args: dir => ['-j1', '--store', join(dir, 'store'), '--source', join(mirror, '{name}')],
    input: commits.map((commit, i) => `${JSON.stringify(instance(i, commit))}\n`).join(''),
    leave,
    check: storeIsSound,
  }
}

/** Rollouts on worktrees that are there, with leases and a cache. */
export function searching(mirror: string): Job {
  const worktree = preparing(mirror)
  return {
    script: 'bin/cg-rollout',
    args: dir => ['--policy', 'lexical', '-j1', '--cache', join(dir, 'cache.db'), '-o', join(dir, 'out.ndjson')],
    env: dir => ({ CG_STORE: join(dir, 'store') }),
    before: async dir => (await run(worktree.script, worktree.args(dir), { input: worktree.input! })).stdout,
    leave,
    check: async (t, dir, whole) => {
      await scoring.check!(t, dir, whole)
      await storeIsSound(t, dir)
    },
  }
}

async function storeIsSound(t: Test, dir: string): Promise<void> {
  for (const tree of listTrees(join(dir, 'store')).filter(({ ready }) => ready))
    t.strictSame(await verifyTree(tree), [], 'a worktree with a mark is whole')
}

function instance(n: number, base_commit: string) {
  return { instance_id: `i${n}`, repo: 'acme/lib', base_commit, problem_statement: 'f() gives the wrong v' }
}

function lastLine(file: string): string {
  return timeless(readFileSync(file, 'utf8')).trimEnd().split('\n').at(-1)!
}
