import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import t from 'tap'
import { echo, echoStatuses, records, rows, run, scratch, shell, start } from './process.js'
import { stoppedNeighbour } from './stopped.js'

const Sqlite = createRequire(import.meta.url)('better-sqlite3') as typeof Database

const until = async (condition: () => boolean) => {
  for (let n = 0; n < 400 && !condition(); n++) await sleep(25)
}

t.setTimeout(200_000)

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  t.test(`${signal}: what is in flight finishes, then the process dies of it`, async t => {
    const { child, done } = start(echo, ['-j1', '--wait', '150'], { input: null })
    let seen = ''
    child.stdout!.on('data', text => {
      seen += text
    })
    child.stdin!.write(rows(50))
    await until(() => seen.includes('"i1"'))
    child.kill(signal)
    const { stdout, stderr, status, signal: died } = await done
    t.equal(status, null)
    t.equal(died, signal)
    t.match(stderr, new RegExp(`^cg-echo: ${signal}: finishing what is in flight; once more ends at once$`, 'm'))
    t.notMatch(stderr, /^ +at /m)
    const lines = records(stdout)
    t.match(lines.at(-1), { kind: 'end', ok: false })
    t.ok(lines.length >= 4 && lines.length < 30, `${lines.length} lines`)
    t.same(
      lines.slice(1, -1).map(({ instance_id }) => instance_id),
      lines.slice(1, -1).map((_, n) => `i${n}`),
      'a prefix of the whole',
    )
  })

t.test('after a signal the output is no whole one, although all input was read', async t => {
  const { child, done } = start(echo, ['-j2', '--wait', '1500'], { input: rows(3) })
  let seen = ''
  child.stdout!.on('data', text => {
    seen += text
  })
  await until(() => seen.includes('"i0"'))
  await sleep(300) // i2 is at work, and behind it there is nothing to read
  child.kill('SIGTERM')
  const { stdout, signal } = await done
  t.equal(signal, 'SIGTERM')
  t.match(records(stdout).at(-1), { kind: 'end', ok: false, in: 3 })
})

t.test('a shell sees 128 + n', async t => {
  const { stdout } = await shell(
    '$ECHO -q --wait 5000 <<< "$ROW" > /dev/null & sleep 1.5; kill -TERM $!; kill -TERM $!; wait $!; echo $?'.replace(
      '"$ROW"',
      `'${rows(1).trim()}'`,
    ),
  )
  t.equal(stdout, '143\n')
})

t.test('a second signal ends at once', async t => {
  const { child, done } = start(echo, ['-j1', '--wait', '60000'], { input: null })
  let heard = ''
  child.stdout!.on('data', () => {
    heard ||= 'run'
  })
  child.stderr!.on('data', text => {
    heard += text
  })
  child.stdin!.write(rows(1))
  await until(() => heard.startsWith('run'))
  await sleep(300)
  child.kill('SIGTERM')
  await until(() => heard.includes('finishing'))
  const before = Date.now()
  child.kill('SIGTERM')
  const { signal } = await done
  t.equal(signal, 'SIGTERM')
  t.ok(Date.now() - before < 5000)
})

t.test('a second signal ends at once while the cache is locked, and when the lock goes the first one is orderly', async t => {
  const { dir } = scratch(t)
  const cache = join(dir, 'cache.db')
  t.match(await run(echo, ['--memo', '--cache', cache], { input: rows(1, 100) }), { status: 0 })
  const other = new Sqlite(cache)
  t.teardown(() => other.close())
  for (const twice of [true, false]) {
    const { child, done } = start(echo, ['-j1', '--memo', '--wait', '100', '--cache', cache], { input: null })
    let heard = ''
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', text => {
        heard += text
      })
    child.stdin!.write(rows(50, twice ? 0 : 50))
    await until(() => heard.includes(twice ? '"i0"' : '"i50"'))
    other.exec('BEGIN IMMEDIATE')
    child.kill('SIGTERM')
    await until(() => heard.includes('finishing'))
    await sleep(500)
    const before = Date.now()
    if (twice) child.kill('SIGTERM')
    else other.exec('COMMIT')
    const { signal, stdout } = await done
    if (twice) other.exec('COMMIT')
    t.equal(signal, 'SIGTERM')
    t.ok(Date.now() - before < 10_000, 'no 20 s for the lock')
    t.equal(records(stdout).at(-1)?.kind, twice ? 'instance' : 'end')
  }
})

t.test('a full pipe: the first signal waits for the reader, the second does not', async t => {
  for (const twice of [false, true]) {
    const { child, done } = start(echo, ['--size', '100000'], { input: null })
    const reader = child.stdout!
    await new Promise<void>(resolve =>
      reader.once('data', () => {
        reader.pause()
        resolve()
      }),
    )
    child.stdin!.write(rows(20))
    let heard = ''
    child.stderr!.on('data', text => {
      heard += text
    })
    await sleep(500) // until it is full; if it is not, less is tested
    child.kill('SIGTERM')
    await until(() => heard.includes('finishing'))
    t.equal(child.exitCode ?? child.signalCode, null)
    if (twice) child.kill('SIGTERM')
    reader.resume()
    const { stdout, signal } = await done
    t.equal(signal, 'SIGTERM')
    if (!twice) t.match(records(stdout).at(-1), { kind: 'end', ok: false }, 'whole lines, and the end that says what they are')
  }
})

t.test('a signal while nothing has come', async t => {
  const { child, done } = start(echo, [], { input: null })
  let seen = ''
  child.stdout!.on('data', text => {
    seen += text
  })
  await until(() => seen.includes('"run"'))
  child.kill('SIGHUP')
  const { stdout, signal } = await done
  t.equal(signal, 'SIGHUP')
  t.match(records(stdout), [{ kind: 'run' }, { kind: 'end', ok: false, in: 0 }])
})

t.test('a neighbour that stands still for a while', t => stoppedNeighbour(t, 1)) // longer in test/slow/stopped.test.ts

t.test('standard input closed is an empty input', async t => {
  const { stdout, stderr } = await shell('$ECHO <&-; echo $?')
  t.match(stdout, /"kind":"end".*"ok":true.*\n0\n$/)
  t.match(stderr, /0 in, 0 out/)
})

t.test('finished work is in the cache after a signal, and a rerun gives what an uninterrupted run gives', async t => {
  const { dir } = scratch(t)
  const args = ['-j2', '--memo', '--cache', join(dir, 'cache.db')]
  const input = rows(12)
  const whole = await run(echo, ['-j2', '--memo', '--cache', join(dir, 'other.db')], { input })
  const { child, done } = start(echo, [...args, '--wait', '150'], { input: null })
  let seen = ''
  child.stdout!.on('data', text => {
    seen += text
  })
  child.stdin!.write(input)
  await until(() => seen.includes('"i3"'))
  child.kill('SIGTERM')
  await done
  const again = await run(echo, args, { input })
  t.equal(again.stdout, whole.stdout)
  const cached = Number(/(\d+) cached/.exec(again.stderr)?.[1])
  t.ok(cached >= 4 && cached < 12, `${cached} cached`)
})

t.test('-o after a signal: what was done is kept under another name', async t => {
  const { dir } = scratch(t)
  const out = join(dir, 'out')
  const { child, done } = start(echo, ['-j1', '--wait', '50', '-o', out], { input: null })
  child.stdin!.write(rows(400))
  await until(() => readdirSync(dir).some(name => statSync(join(dir, name)).size > 1000))
  child.kill('SIGTERM')
  const { signal, stderr } = await done
  t.equal(signal, 'SIGTERM')
  t.notOk(existsSync(out))
  t.match(stderr, `what was done is in ${out}.partial`)
  t.match(records(readFileSync(`${out}.partial`, 'utf8')).at(-1), { kind: 'end', ok: false })
})

t.test(
  'a reader that dies is noticed while nothing is written',
  { skip: existsSync('build/Release/cg.node') ? false : 'the addon is not built' },
  async t => {
    const { child, done } = start(echo, [], { input: null })
    await new Promise(resolve => child.stdout!.once('data', resolve))
    child.stdout!.destroy()
    const { status, signal, stderr } = await done
    t.equal(status, 0)
    t.equal(signal, null)
    t.equal(stderr, '')
  },
)

t.test('a whole pipe ends when its last reader does', async t => {
  const { dir, file } = scratch(t)
  file('in', rows(500))
  const { stdout, stderr } = await shell(`$ECHO -q --size 5000 in | $ECHO -q | $ECHO -q | head -2 | wc -l; ${echoStatuses}`, dir)
  t.equal(stdout, '2\n0 0 0 0 0\n')
  t.equal(stderr, '')
})
