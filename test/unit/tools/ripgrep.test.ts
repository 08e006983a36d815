import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ripgrep } from '#cg/tools/ripgrep.js'
import { processes } from '../../pipeline/proc.js'
import { scratch } from '../repo/make-repository.js'

// A pipe that nobody writes to: a search of it ends when it is killed, however fast the machine is.
t.test('a search is killed at its time limit, and when it is aborted', async t => {
  const root = scratch(t)
  writeFileSync(join(root, 'a.txt'), 'one line\n')
  execFileSync('mkfifo', [join(root, 'b.txt')])
  const query = { root, names: ['a.txt', 'b.txt'].map(name => Buffer.from(name)), pattern: 'line', ignoreCase: false, context: 0 }
  t.same(await ripgrep({ ...query, timeoutMs: 300 }, () => {}), { kind: 'timeout' })
  await t.rejects(
    ripgrep({ ...query, timeoutMs: 60_000 }, () => {}, AbortSignal.timeout(300)),
    { name: 'TimeoutError' },
  )
})

t.test('searches leave neither processes nor zombies', async t => {
  const root = scratch(t)
  writeFileSync(join(root, 'a.txt'), 'one line\n')
  execFileSync('mkfifo', [join(root, 'b.txt')])
  const search = (names: (string | Buffer)[], timeoutMs: number, signal?: AbortSignal) =>
    ripgrep(
      { root, names: names.map(name => Buffer.from(name)), pattern: 'line', ignoreCase: false, context: 0, timeoutMs },
      () => {},
      signal,
    )
  const latin1 = Buffer.from([0xff]) // goes through xargs
  await Promise.allSettled(
    Array.from({ length: 4 }, () => [
      search(['a.txt'], 60_000),
      search(['a.txt', latin1], 60_000),
      search(['b.txt'], 200),
      search(['b.txt', latin1], 60_000, AbortSignal.timeout(200)),
    ]).flat(),
  )
  t.same(
    processes().filter(({ parent, cwd }) => parent === process.pid || cwd.startsWith(root)),
    [],
  )
})
