import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { makeManyCommits, manyInstances } from './many-instances.js'
import { records } from './process.js'
import { type Watched, watchPipe } from './watch-pipe.js'

export const instanceStages = ['cg-worktree', 'cg-mine', 'cg-rollout', 'cg-reward', 'cg-eval']

/** Writes rows about `commits` commits in each of four repositories into `dir`. */
export function makeRows(dir: string, commits: number, count: number): void {
  const repositories = ['acme/one', 'acme/two', 'acme/three', 'acme/four'].map(repo => makeManyCommits(join(dir, 'mirror'), repo, commits))
  writeFileSync(join(dir, 'rows.ndjson'), [...manyInstances(repositories, count)].join(''))
}

/** The rows of `dir` from their commits to their scores, which go into `scores.ndjson`. `cache`: `--no-cache`, or nothing. */
export function scoreRows(dir: string, cache: '--no-cache' | '', everyMs: number): Promise<Watched> {
  const stages = [
    `bin/cg-worktree ${cache} --source ${join(dir, 'mirror/{repo}')} ${join(dir, 'rows.ndjson')}`,
    `bin/cg-mine gold ${cache}`,
    `bin/cg-rollout ${cache} --policy lexical`,
    `bin/cg-reward ${cache}`,
    `bin/cg-eval score ${cache} -o ${join(dir, 'scores.ndjson')}`,
  ]
  return watchPipe(stages.join(' | '), { env: { CG_STORE: join(dir, 'store'), CG_CACHE: join(dir, 'cache.db') }, everyMs })
}

/** Tests that every row came out, in order, and that every stage counted them all. Returns a digest of the output, which is to be the same each time. */
export function testScores(t: Test, dir: string): string {
  const text = readFileSync(join(dir, 'scores.ndjson'), 'utf8')
  const scores = records(text)
  const rows = records(readFileSync(join(dir, 'rows.ndjson'), 'utf8'))
  const ids = (kind: string) => scores.filter(record => record.kind === kind)
  t.equal(ids('score').length, rows.length)
  const misplaced = ids('score').findIndex(({ instance_id }, n) => instance_id !== rows[n]!.instance_id)
  t.equal(misplaced, -1, 'in the order of the rows')
  t.ok(ids('score').filter(({ f05 }) => (f05 as number) > 0.9).length > rows.length / 2, 'the scripted agent finds most of them')
  const whole = { in: rows.length, out: rows.length, faults: 0, ok: true }
  t.same(
    ids('end').map(({ stage, in: read, out, faults, ok }) => ({ stage, in: read, out, faults, ok })),
    ['worktree', 'mine gold', 'rollout', 'reward', 'eval score'].map(stage => ({ stage, ...whole })),
  )
  return createHash('sha256')
    .update(text.replaceAll(/"timing":\{[^}]*\}/g, ''))
    .digest('hex')
}
