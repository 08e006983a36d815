import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import t from 'tap'
import type { Rollout } from '#cg/record/schema.js'
import { records, run, scratch, start } from '../pipeline/process.js'
import { makeRepository } from '../unit/repo/make-repository.js'

// The fixture model behind llama-cpp-python's server, from PyPI: compiled once into build/slow, which takes minutes.
t.setTimeout(3_600_000)
const venv = resolve(process.env.CG_SLOW_VENV ?? 'build/slow/venv')
const python = join(venv, 'bin/python')
if (!existsSync(join(venv, 'bin/uvicorn'))) {
  mkdirSync(venv, { recursive: true })
  execFileSync('python3', ['-m', 'venv', venv], { stdio: 'inherit' })
  execFileSync(python, ['-m', 'pip', 'install', '-q', 'llama-cpp-python[server]==0.3.36', 'gguf', 'numpy'], {
    stdio: 'inherit',
    env: { ...process.env, CMAKE_ARGS: '-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_C_FLAGS_RELEASE=-O1' },
  })
}

const { dir } = scratch(t)
const gguf = join(dir, 'model.gguf')
execFileSync(python, ['test/slow/make-gguf.py', 'fixtures/model', gguf], { stdio: 'inherit' })

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise(done => probe.once('listening', done))
  const { port } = probe.address() as AddressInfo
  await new Promise(done => probe.close(done))
  return port
}

async function serve(port: number): Promise<ChildProcess> {
  const options = { model: gguf, model_alias: 'tiny', host: '127.0.0.1', port, n_ctx: 4096, n_threads: 1, interrupt_requests: 'False' }
  const args = ['-m', 'llama_cpp.server', ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])]
  const server = spawn(python, args, { stdio: ['ignore', 'ignore', 'ignore'] })
  for (let tries = 0; tries < 600; tries++) {
    const up = await fetch(`http://127.0.0.1:${port}/v1/models`).then(
      response => response.ok,
      () => false,
    )
    if (up) return server
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`)
    await new Promise(wait => setTimeout(wait, 100))
  }
  throw new Error('the server does not come up')
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise(done => child.once('exit', done))
}

const port = await freePort()
let server = await serve(port)
t.teardown(() => server.kill('SIGKILL'))

const commits = makeRepository(join(dir, 'mirror/lib'), [
  {
    'lib/header.py': 'def parse_header(line):\n    return line[:-1]\n',
    'lib/queue.py': 'def put_item(queue, item):\n    raise ValueError("queue is full")\n',
  },
])
const env = { CG_STORE: join(dir, 'store'), CG_CACHE: join(dir, 'cache.db') }
const rows = Array.from({ length: 24 }, (_, i) =>
  JSON.stringify({
    instance_id: `i${i}`,
    repo: 'acme/lib',
    base_commit: commits[0],
    problem_statement: `${i % 2 ? 'put_item' : 'parse_header'} fails for the ${i}th time.`,
  }),
)
const prepared = await run('bin/cg-worktree', ['--no-run', '--source', join(dir, 'mirror/{name}')], { env, input: `${rows.join('\n')}\n` })
const args = [
  '--policy',
  `openai:http://127.0.0.1:${port}/v1`,
  '--prompt',
  'brief',
  '-n',
  '2',
  '--max-tokens',
  '400',
  '--concurrency',
  '4',
  '-j',
  '4',
  '--no-run',
  '--seed',
  '3',
]
const rollouts = (stdout: string) => records(stdout).filter(r => r.kind === 'rollout') as unknown as Rollout[]

t.test('killed in the middle, and run again', async t => {
  const { child, done } = start('bin/cg-rollout', args, { env, input: prepared.stdout })
  let lines = 0
  child.stdout!.on('data', text => {
    lines += String(text).split('\n').length - 1
    if (lines >= 8) child.kill('SIGKILL')
  })
  const { signal, stdout } = await done
  t.equal(signal, 'SIGKILL')
  const whole = stdout.slice(0, stdout.lastIndexOf('\n') + 1)
  const before = rollouts(whole)
  t.ok(before.length >= 8 && before.length < 48, `${before.length} rollouts before the kill`)

  const again = await run('bin/cg-rollout', args, { env, input: prepared.stdout })
  t.equal(again.status, 0, again.stderr)
  t.ok(again.stdout.startsWith(whole), 'what was written before comes again, byte for byte: a server would not say it twice')
  const all = rollouts(again.stdout)
  t.equal(all.length, 48)
  t.ok(Number(/(\d+) cached/.exec(again.stderr)![1]) >= 4, again.stderr)
  for (const r of all) {
    t.match(r.policy, { kind: 'openai', name: 'tiny', api: 'chat' })
    t.notOk(r.tokens, 'text-only')
    if (r.stop !== 'fault') t.ok(r.usage.prompt > 0 && r.usage.generated > 0)
  }
  const calls = all.flatMap(r => r.turns.flatMap(turn => turn.calls))
  t.ok(calls.filter(call => call.status === 'ok').length > 4, 'its calls find something')
  t.ok(all.filter(r => r.answer.parse === 'exact').length > 24, 'most of it answers in the form that it was taught')
  const third = await run('bin/cg-rollout', args, { env, input: prepared.stdout })
  t.equal(third.stdout, again.stdout)
  t.match(third.stderr, /24 in, 48 out, 24 cached/)
})

t.test('a server that dies: faults, and the rest when it is back', async t => {
  const other = [...args, '--retries', '0', '-k', '--seed', '4']
  const { child, done } = start('bin/cg-rollout', other, { env, input: prepared.stdout })
  let lines = 0
  child.stdout!.on('data', text => {
    lines += String(text).split('\n').length - 1
    if (lines >= 6) server.kill('SIGKILL')
  })
  const { status, stdout, stderr } = await done
  t.equal(status, 3, stderr)
  const first = rollouts(stdout)
  t.equal(first.length, 48, 'every member is there')
  const failed = first.filter(r => r.stop === 'fault')
  t.ok(failed.length > 0 && failed.length < 48, `${failed.length} faults`)
  t.match(
    records(stdout).find(r => r.kind === 'fault'),
    { code: 'E_SERVER', retry: true },
  )

  await ended(server)
  server = await serve(port)
  const again = await run('bin/cg-rollout', other, { env, input: prepared.stdout })
  t.equal(again.status, 0, again.stderr)
  const second = rollouts(again.stdout)
  t.equal(second.filter(r => r.stop === 'fault').length, 0)
  for (const [i, r] of first.entries()) if (r.stop !== 'fault') t.same(second[i], r, 'what was there already')
})
