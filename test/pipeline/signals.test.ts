import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { echo, echoStatuses, records, rows, run, scratch, shell, start } from './process.js'

const until = async (condition: () => boolean) => {
  for (let n = 0; n < 400 && !condition(); n++) await sleep(25)
}

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
