/**
 * Calls a second of the tools against `git grep` in the same worktree, in one run.
 *
 *   node build/js/test/bench/tools.js [PATH]     PATH: a repository, at its HEAD; default a fixture project
 *
 * Every way runs the same queries round robin, one call at a time; rounds alternate between the ways, so that other load on the machine meets all alike. Printed:
 * the median of the rounds, in calls a second, and the ratio to `git grep`. Nothing is cached.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import { repositoryTree } from '#cg/tools/repository-tree.js'
import { worktreeTree } from '#cg/tools/worktree-tree.js'

const rounds = 9
const scratch = mkdtempSync(join(tmpdir(), 'cg-bench-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

const given = process.argv[2]
const { tree, worktree } = await repositoryTree(given ?? fixture('inkwell'), join(scratch, 'store'))
const root = worktree.path!
const slow = await worktreeTree({ path: root, bare: worktree.bare!, tree: worktree.tree, scanBytes: 0 })
const paths = await tree.list()
const runner = createToolRunner({ toolset: codegrep(), cache: noCache, cores: availableParallelism() })

const literals = ['def ', 'class ', 'import', 'self', 'return None', 'raise']
const patterns = ['def [a-z]+\\(', '^class \\w+', 'import (os|re)\\b', 'self\\.\\w+ =', 'return None$', 'raise \\w+Error']
const ways: Record<string, () => Promise<void>> = {
  'git grep, literals': async () => literals.forEach(gitGrep),
  'grep, literals': () => calls(literals.map(pattern => [tree, 'grep', { pattern }])),
  'grep, literals, by ripgrep': () => calls(literals.map(pattern => [slow, 'grep', { pattern }])),
  'grep, patterns': () => calls(patterns.map(pattern => [tree, 'grep', { pattern }])),
  glob: () => calls(literals.map(() => [tree, 'glob', { pattern: '**/*.py' }])),
  read: () => calls(literals.map((_, i) => [tree, 'read', { path: paths[i % paths.length]! }])),
}

const seconds = new Map<string, number[]>(Object.keys(ways).map(name => [name, []]))
for (let round = -1; round < rounds; round++)
  for (const [name, way] of Object.entries(ways)) {
    const start = performance.now()
    await way()
    if (round >= 0) seconds.get(name)!.push((performance.now() - start) / 1000)
  }

const bytes = (await Promise.all(paths.map(path => tree.read(path)))).reduce(
  (sum, found) => sum + (found.kind === 'file' ? found.bytes.length : 0),
  0,
)
process.stdout.write(
  `${given ?? 'fixture inkwell'}: ${paths.length} files, ${(bytes / 1e6).toFixed(2)} MB; median of ${rounds} rounds of ${literals.length} calls\n`,
)
const base = rate('git grep, literals')
for (const name of Object.keys(ways))
  process.stdout.write(`${name.padEnd(28)} ${rate(name).toFixed(0).padStart(8)} calls/s ${(rate(name) / base).toFixed(1).padStart(8)} x\n`)

function rate(name: string): number {
  const sorted = seconds.get(name)!.sort((a, b) => a - b)
  return literals.length / sorted[sorted.length >> 1]!
}

async function calls(list: [tree: typeof tree, tool: string, args: object][]): Promise<void> {
  for (const [on, tool, args] of list) await runner.call(on, tool, args)
}

function gitGrep(pattern: string): void {
  try {
    execFileSync('git', ['grep', '-nI', '-e', pattern], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28 })
  } catch (error) {
    if ((error as { status: number }).status !== 1) throw error
  }
}

/** A fixture project as a repository of one commit. */
function fixture(name: string): string {
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
