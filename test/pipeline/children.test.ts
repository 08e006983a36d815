import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { commitChange, makeRepository } from '../unit/repo/make-repository.js'
import { alive, at, slay, tree, until, zombies } from './proc.js'
import { collect, plainNode, type Result, records, rows, scratch } from './process.js'

t.setTimeout(280_000)
const skip = existsSync('build/Release/cg-leash') ? false : 'the leash is not built'

/** It and its child listen to no signal, as a connection that hangs in the kernel does. */
const deafSsh = `#!/bin/sh
trap '' INT TERM HUP
{ while :; do sleep 1; done; } &
while :; do sleep 1; done
`

t.test('a clone, and the helpers of git, end with a command that is killed', { skip }, async t => {
  const { command, dir } = worktree(t)
  const { child } = command(['--source', 'git@host:{repo}'])
  const children = await started(t, child, /git.* clone/, /path\/ssh/)
  child.kill('SIGKILL')
  t.ok(await until(() => alive(children).length === 0), 'all are gone')
  t.same(at(dir), [], 'and nothing that works there was overlooked')
})

t.test('a helper that waits for a server that never answers ends too', { skip }, async t => {
  const { command, dir } = worktree(t)
  const { child } = command(['--source', `http://127.0.0.1:${await silent(t)}/{repo}`])
  const children = await started(t, child, /git-remote-http/)
  child.kill('SIGKILL')
  t.ok(await until(() => alive(children).length === 0))
  t.same(at(dir), [])
})

t.test('one that does not listen to a signal is killed after a while', { skip }, async t => {
  const { command, dir } = worktree(t)
  const { child, done } = command(['--source', 'git@host:{repo}'])
  const children = await started(t, child, /path\/ssh/)
  child.kill('SIGTERM')
  const { signal, stdout, stderr } = await done
  t.equal(signal, 'SIGTERM')
  t.match(records(stdout).at(-1), { kind: 'end', ok: false, faults: 0 })
  t.match(stderr, /^cg-worktree: SIGTERM: finishing what is in flight; once more ends at once$/m)
  t.same(alive(children), [])
  t.same(zombies(children), [])
  t.same(at(dir), [])
})

t.test('a second signal ends at once, children included', { skip }, async t => {
  const { command, dir } = worktree(t)
  const { child, done, heard } = command(['--source', 'git@host:{repo}'])
  const children = await started(t, child, /path\/ssh/)
  child.kill('SIGTERM')
  t.ok(await until(() => heard().includes('finishing')))
  child.kill('SIGTERM')
  t.match(await done, { signal: 'SIGTERM' })
  t.ok(await until(() => alive(children).length === 0))
  t.same(at(dir), [])
})

t.test('an interrupt from the terminal, to the whole group, is no failure of the clone', { skip }, async t => {
  const { command, dir } = worktree(t)
  const { child, done } = command(['-k', '--source', `git://127.0.0.1:${await silent(t)}/{repo}`], { detached: true })
  const children = await started(t, child, /git.* clone/)
  process.kill(-child.pid!, 'SIGINT')
  const { signal, stdout } = await done
  t.equal(signal, 'SIGINT')
  t.same(
    records(stdout).map(({ kind }) => kind),
    ['run', 'end'],
    'no fault record',
  )
  t.match(records(stdout)[1], { ok: false, faults: 0 })
  t.same(alive(children), [])
  t.same(at(dir), [])
})

t.test('a search ends with its command', { skip }, async t => {
  const { command, dir } = worktree(t)
  const bits = randomBits(8_000)
  makeRepository(join(dir, 'r'), [{ a: bits, b: bits, c: bits }])
  const search = ['tool', 'grep', JSON.stringify({ pattern: '1[01]{240}[^01]' }), '--repo', join(dir, 'r'), '--grep-timeout', '600']
  const killed = command(search)
  const direct = await started(t, killed.child, /rg .*--json/)
  killed.child.kill('SIGKILL')
  t.ok(await until(() => alive(direct).length === 0))

  // a name that is not UTF-8 goes through xargs
  const latin1 = Buffer.concat([Buffer.from(join(dir, 'r/')), Buffer.from([0xff])])
  writeFileSync(latin1, bits)
  commitChange(join(dir, 'r'), {})
  const through = command(search)
  const children = await started(t, through.child, /xargs/, /^\S*rg .*--json/)
  through.child.kill('SIGKILL')
  t.ok(await until(() => alive(children).length === 0))

  const ended = command(search, { detached: true })
  await started(t, ended.child, /rg .*--json/)
  process.kill(-ended.child.pid!, 'SIGINT') // from the terminal
  t.match(await ended.done, { signal: 'SIGINT', stdout: '' })
  t.same(at(dir), [])
})

t.test('the nested pipe of an evaluation ends with the training', { skip }, async t => {
  const { command, dir } = worktree(t)
  const [commit] = makeRepository(join(dir, 'mirror/lib'), [{ 'a.py': 'def f():\n    return 1\n' }]) as [string]
  const target = { gold_rules: 'codegrep/1', files: [{ path: 'a.py' }] }
  const instance = { instance_id: 'i', repo: 'acme/lib', base_commit: commit, problem_statement: 'f returns 1', target }
  const prepared = join(dir, 'prepared')
  const made = command(['--source', join(dir, 'mirror/{name}'), '-o', prepared], { input: `${JSON.stringify(instance)}\n` })
  t.match(await made.done, { status: 0 })
  const sampled = join(dir, 'sampled')
  const rollout = command(['--policy', 'native:fixtures/model', '--max-tokens', '40', prepared, '-o', sampled], {
    script: 'bin/cg-rollout',
  })
  t.match(await rollout.done, { status: 0 })

  const model = ['--model', 'fixtures/model', '--lora-rank', '2', '--out', join(dir, 'out')]
  const args = ['sft', ...model, '--eval-every', '1', '--eval-file', prepared, '--eval-samples', '64', sampled]
  const { child } = command(args, { script: 'bin/cg-train' })
  const children = await started(t, child, /cg-rollout/, /cg-reward/, /cg-eval/)
  child.kill('SIGKILL')
  t.ok(await until(() => alive(children).length === 0))
  t.same(at(dir), [])
})

t.test('without the leash searches and clones work as well, and end at a signal', async t => {
  const { command, dir } = worktree(t)
  const copy = join(dir, 'copy')
  mkdirSync(copy)
  for (const part of ['bin', 'dist', 'package.json']) cpSync(part, join(copy, part), { recursive: true })
  symlinkSync(resolve('node_modules'), join(copy, 'node_modules'))
  const script = join(copy, 'bin/cg-worktree')
  makeRepository(join(dir, 'r'), [{ 'a.py': 'def main\n' }])
  const search = ['tool', 'grep', '{"pattern": "m.in"}', '--repo', join(dir, 'r')]
  t.match(await command(search, { script }).done, { status: 0, stdout: 'a.py:1:def main\n' })

  const { child, done } = command(['--source', `git://127.0.0.1:${await silent(t)}/{repo}`], { script })
  const children = await started(t, child, /git.* clone/)
  t.notOk(children.some(({ words }) => words.includes('cg-leash')))
  child.kill('SIGTERM')
  t.match(await done, { signal: 'SIGTERM' })
  t.same(alive(children), [])
})

type Started = { child: ChildProcess; done: Promise<Result>; heard(): string }

/** Commands with a store and a cache of their own, and a deaf ssh before the real one. Whatever a failed test leaves is ended. */
function worktree(t: Test) {
  const { dir } = scratch(t)
  mkdirSync(join(dir, 'path'))
  writeFileSync(join(dir, 'path/ssh'), deafSsh, { mode: 0o755 })
  t.teardown(() => slay(at(dir)))
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: `${dir}/path:${process.env.PATH}`,
    CG_STORE: join(dir, 'store'),
    CG_CACHE: join(dir, 'cache.db'),
    NO_PROXY: '127.0.0.1',
    no_proxy: '127.0.0.1',
  }
  delete env.NODE_OPTIONS // the test runner's hooks are not for the commands
  const one = JSON.parse(rows(1))
  const command = (
    args: string[],
    { script = 'bin/cg-worktree', detached = false, input = `${JSON.stringify({ ...one, base_commit: 'a'.repeat(40) })}\n` } = {},
  ): Started => {
    const child = spawn(plainNode[0], [...plainNode.slice(1), script, ...args], { env, detached })
    const { done, heard } = collect(child)
    child.stdin.on('error', () => {}).end(input)
    return { child, done, heard: () => heard().stderr }
  }
  return { dir, command }
}

/** Waits until programs of these command lines run below a process, and gives all that do. */
async function started(t: Test, child: ChildProcess, ...words: RegExp[]) {
  let seen = tree(child.pid!)
  const all = () => {
    seen = tree(child.pid!)
    return words.every(pattern => seen.some(one => pattern.test(one.words) && !one.words.includes('cg-leash')))
  }
  t.ok(await until(all), `${words} run`)
  return seen
}

/** The port of a server that takes connections and says nothing. */
async function silent(t: Test): Promise<number> {
  const sockets = new Set<{ destroy(): unknown }>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Lines of 500 random bits, which a search has to work for. */
function randomBits(lines: number): string {
  let state = 1
  const bit = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >> 16) & 1
  }
  return Array.from({ length: lines }, () => `${Array.from({ length: 500 }, bit).join('')}\n`).join('')
}
