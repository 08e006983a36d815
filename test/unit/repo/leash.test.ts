import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { endAtOnce, leashed } from '#cg/repo/leash.js'
import { alive, slay, tree, until } from '../../pipeline/proc.js'
import { scratch } from './make-repository.js'

t.setTimeout(60_000)

const leash = 'build/Release/cg-leash'
const skip = existsSync(leash) ? false : 'the leash is not built'

t.test('a program on the leash ends as it would without', { skip }, async t => {
  t.same(await ended(start('echo "$0 $1"; echo no >&2; exit 7', 'word')), { status: 7, signal: null, out: 'sh word\n', said: 'no\n' })
  t.match(await ended(start('kill -KILL $$')), { status: null, signal: 'SIGKILL' })
  t.match(await ended(start('kill -ABRT $$')), { status: null, signal: 'SIGABRT' })
  t.match(await ended(start('cat', '', 'what goes in')), { status: 0, out: 'what goes in' })
  t.match(await ended(start('echo $CG_LEASH')), { out: '\n' }, 'it does not learn of the leash')
  const { command, env } = leashed('/no/such/program')
  t.match(await ended(spawn(command[0], command.slice(1), { env })), { status: 127, said: '/no/such/program: No such file or directory\n' })
})

t.test('the address space is limited', { skip }, async t => {
  const { command, env } = leashed('/bin/sh', { addressSpaceKib: 123_456 })
  t.match(await ended(spawn(command[0], [...command.slice(1), '-c', 'ulimit -v'], { env })), { out: '123456\n' })
})

t.test('a helper that the program forgot goes with it', { skip }, async t => {
  const child = start('trap "" TERM INT HUP; sleep 600 & echo $!; exec > /dev/null; read line')
  const helper = await firstLine(child)
  const before = tree(child.pid!)
  t.ok(before.some(({ pid }) => pid === helper))
  child.stdin!.end('\n')
  t.match(await ended(child), { status: 0 })
  t.same(alive(before), [], 'when the leash has ended, so has everything')
})

/** It and its child take no notice of what a program usually ends by. It says its number when both are there. */
const stubborn = 'trap "" TERM INT HUP; { while :; do sleep 1; done; } & echo $$; while :; do sleep 1; done'

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
  t.test(`${signal} is passed on`, { skip }, async t => {
    const child = start(`trap "echo bye; exit 3" ${signal.slice(3)}; echo ready; while :; do sleep 0.05; done`)
    await firstLine(child)
    child.kill(signal)
    t.match(await ended(child), { status: 3, signal: null, out: 'bye\n' })
  })

t.test('and after a while enforced', { skip }, async t => {
  const child = start(stubborn)
  await firstLine(child)
  const before = tree(child.pid!)
  t.ok(before.length >= 2, 'the program and its child')
  child.kill('SIGTERM')
  t.match(await ended(child), { status: null, signal: 'SIGKILL' })
  t.same(alive(before), [])
})

t.test('everything ends at once when that is asked for', { skip }, async t => {
  const child = start(stubborn)
  await firstLine(child)
  const before = tree(child.pid!)
  endAtOnce(child.pid!)
  t.match(await ended(child), { status: null, signal: 'SIGKILL' })
  t.same(alive(before), [])
})

t.test('when the parent is killed, or the leash, everything ends', { skip }, async t => {
  const dir = scratch(t)
  const script = join(dir, 'parent.mjs')
  writeFileSync(
    script,
    `import { spawn } from 'node:child_process'
     import { leashed } from ${JSON.stringify(join(process.cwd(), 'dist/repo/leash.js'))}
     const { command, env } = leashed('/bin/sh')
     spawn(command[0], [...command.slice(1), '-c', ${JSON.stringify(stubborn)}], { env: { ...process.env, ...env }, stdio: 'inherit' })`,
  )
  const parent = () => spawn(process.execPath, [script], { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'ignore'] })

  const killed = parent()
  await firstLine(killed)
  const before = tree(killed.pid!)
  t.ok(before.length >= 3, 'the leash, the program, its child')
  killed.kill('SIGKILL')
  t.ok(await until(() => alive(before).length === 0), 'nothing is left')

  const other = parent()
  const program = await firstLine(other)
  const [holder, ...held] = tree(other.pid!)
  t.match(holder!.words, /cg-leash sh|cg-leash .bin.sh/)
  process.kill(holder!.pid, 'SIGKILL')
  t.ok(await until(() => alive(held.filter(({ pid }) => pid === program)).length === 0), 'the program goes with its leash')
  slay(held)
  other.kill('SIGKILL')
})

t.test('a parent that is gone already', { skip }, async t => {
  const gone = spawn('true')
  await ended(gone)
  const child = spawn(leash, ['sh', '-c', 'echo started'], { env: { CG_LEASH: String(gone.pid) } })
  t.match(await ended(child), { status: 125, out: '' })
  t.match(await ended(spawn(leash, ['true'], { env: {} })), { status: 125, said: /does not name the parent/ })
})

function start(script: string, argument = '', input?: string): ChildProcess {
  const { command, env } = leashed('sh')
  const child = spawn(command[0], [...command.slice(1), '-c', script.replace('$0', 'sh'), 'sh', argument], {
    env: { PATH: process.env.PATH, ...env },
  })
  if (input !== undefined) child.stdin.end(input)
  return child
}

function ended(child: ChildProcess): Promise<{ status: number | null; signal: string | null; out: string; said: string }> {
  let out = ''
  let said = ''
  child.stdout?.on('data', text => {
    out += text
  })
  child.stderr?.on('data', text => {
    said += text
  })
  return new Promise((resolve, reject) => child.on('error', reject).on('close', (status, signal) => resolve({ status, signal, out, said })))
}

/** The number on the first line. */
function firstLine(child: ChildProcess): Promise<number> {
  return new Promise(resolve => child.stdout!.once('data', text => resolve(Number.parseInt(String(text), 10))))
}
