import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import { repositoryTree } from '#cg/tools/repository-tree.js'
import type { Tree } from '#cg/tools/tree.js'
import { worktreeTree } from '#cg/tools/worktree-tree.js'
import type { Bench } from './bench.js'
import { compared } from './figure.js'
import { interleave } from './interleave.js'

const literals = ['def ', 'class ', 'import', 'self', 'return None', 'raise']
const patterns = ['def [a-z]+\\(', '^class \\w+', 'import (os|re)\\b', 'self\\.\\w+ =', 'return None$', 'raise \\w+Error']
const rounds = 9

/**
 * Calls a second of the tools against `git grep` in the same worktree, by the clock: $CG_BENCH_REPOSITORY at its HEAD, or a fixture project.
 *
 * Every way runs the same queries, one call at a time. Nothing is cached.
 */
export const tools: Bench = async function* (say) {
  const scratch = mkdtempSync(join(tmpdir(), 'cg-bench-'))
  try {
    const given = process.env.CG_BENCH_REPOSITORY
    const { tree, worktree } = await repositoryTree(given ?? fixture('inkwell', scratch), join(scratch, 'store'))
    const root = worktree.path!
    const slow = await worktreeTree({ path: root, bare: worktree.bare!, tree: worktree.tree, scanBytes: 0 })
    const paths = await tree.list()
    const found = await Promise.all(paths.map(path => tree.read(path)))
    const bytes = found.reduce((sum, file) => sum + (file.kind === 'file' ? file.bytes.length : 0), 0)
    say(`${given ?? 'fixture inkwell'}: ${paths.length} files, ${(bytes / 1e6).toFixed(2)} MB`)

    const runner = createToolRunner({ toolset: codegrep(), cache: noCache, cores: availableParallelism() })
    async function calls(list: [on: Tree, tool: string, args: object][]): Promise<void> {
      for (const [on, tool, args] of list) await runner.call(on, tool, args)
    }
    const ways = {
      'git grep, literals': async () => {
        for (const pattern of literals) gitGrep(root, pattern)
      },
      'grep, literals': () => calls(literals.map(pattern => [tree, 'grep', { pattern }])),
      'grep, literals, by ripgrep': () => calls(literals.map(pattern => [slow, 'grep', { pattern }])),
      'grep, patterns': () => calls(patterns.map(pattern => [tree, 'grep', { pattern }])),
      glob: () => calls(literals.map(() => [tree, 'glob', { pattern: '**/*.py' }])),
      read: () => calls(literals.map((_, i) => [tree, 'read', { path: paths[i % paths.length]! }])),
    }
    const rates = await interleave(mapValues(ways, callsPerSecond), () => {}, rounds)
    for (const [what, ours] of Object.entries(rates))
      if (what !== 'git grep, literals')
        yield compared({
          bench: 'tools',
          what,
          unit: 'calls/s',
          ours,
          peer: rates['git grep, literals'],
          peerName: 'git grep, literals',
          better: 'more',
          threads: availableParallelism(),
        })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** A way of making as many calls as there are literals, as one that measures itself. */
function callsPerSecond(way: () => Promise<void>): () => Promise<number> {
  return async () => {
    const start = performance.now()
    await way()
    return (literals.length / (performance.now() - start)) * 1000
  }
}

function mapValues<K extends string, A, B>(from: Record<K, A>, change: (value: A) => B): Record<K, B> {
  return Object.fromEntries(Object.entries<A>(from).map(([key, value]) => [key, change(value)])) as Record<K, B>
}

function gitGrep(root: string, pattern: string): void {
  try {
    execFileSync('git', ['grep', '-nI', '-e', pattern], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28 })
  } catch (error) {
    if ((error as { status: number }).status !== 1) throw error
  }
}

/** A fixture project as a repository of one commit. */
function fixture(name: string, scratch: string): string {
  const source = join(scratch, name)
  cpSync(join(process.cwd(), 'fixtures/repos', name, 'tree'), source, { recursive: true })
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    ['-c', 'user.name=A', '-c', 'user.email=a@example.org', 'commit', '-q', '-m', 'all'],
  ])
    execFileSync('git', args, { cwd: source })
  return source
}
