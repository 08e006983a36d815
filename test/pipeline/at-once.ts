import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { microEnv } from './micro-run.js'
import { records } from './process.js'
import { type Watched, watchPipe } from './watch-pipe.js'

/** Runs `cg-rollout` on the tasks in `dir`; there git takes a fifth of a second longer than it does, so that what runs at once is seen. */
export async function rollOut(dir: string, args: string): Promise<Watched> {
  const slow = join(dir, 'slow')
  mkdirSync(slow, { recursive: true })
  const git = execFileSync('/bin/sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  writeFileSync(join(slow, 'git'), `#!/bin/sh\nsleep 0.2\nexec ${git} "$@"\n`, { mode: 0o755 })
  const env = { ...microEnv(dir), PATH: `${slow}:${process.env.PATH}` }
  return watchPipe(`bin/cg-rollout --no-cache --max-turns 3 --max-chars 300 ${args} ${dir}/tasks.ndjson`, { env, everyMs: 20 })
}

/** Records of an output without what a clock measured. */
export function timeless(text: string): Record<string, unknown>[] {
  return records(text).map(({ timing: _, ...record }) => record)
}

/**
 * Tests that no more ran at once than there are cores: searches, and openings of trees, each of the latter a leash, the shell and the sleep of `rollOut`.
 * Descriptors follow: three pipes a child, a search reads files.
 */
export function testBounds(t: Test, { stages, zombies }: Watched): void {
  const cores = availableParallelism()
  const looks = stages.get('cg-rollout') ?? []
  const most = (what: 'open' | 'children') => Math.max(...looks.map(look => look[what]))
  t.ok(looks.length > 5, `${looks.length} looks`)
  t.equal(zombies, 0, 'children are waited for')
  // one slow git a core is three processes: the leash, git's stand-in and its sleep; some of the next ones start while they end. Without a limit it is 48
  t.ok(most('children') <= 5 * cores + 4, `${most('children')} children, ${cores} cores`)
  t.ok(most('open') <= 40 + 10 * cores, `${most('open')} descriptors`)
}
