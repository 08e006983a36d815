import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openCache } from '#cg/store/sqlite-cache.js'
import { cacheProcess } from './a-cache-process.js'

const dir = mkdtempSync(join(tmpdir(), 'cg-waiting-'))
t.teardown(() => rmSync(dir, { recursive: true, force: true }))
const key = (n: number) => ({ stage: 'test', version: 1, n })

/** A cache file, and a process that holds its write lock until it ends. */
async function held(name: string) {
  const file = join(dir, name, 'cache.db')
  const cache = openCache({ file })
  cache.put(key(0), 'zero')
  cache.close()
  const holder = cacheProcess(
    file,
    `const { connect } = await import(${JSON.stringify(join(process.cwd(), 'dist/store/sqlite.js'))})
     const db = connect(file, 0); db.exec('BEGIN IMMEDIATE'); say('held'); await told(); db.close()`,
  )
  await holder.said('held')
  return { file, holder }
}

t.test('a writer that does not end: reading goes on, commits by themselves are put off, a flush gives up and says why', async t => {
  const { file, holder } = await held('a')
  const cache = openCache({ file, patienceMs: 300 })
  t.equal(cache.get(key(0)), 'zero')
  cache.put(key(1), 'one')
  await sleep(2500) // two commits by themselves
  t.equal(cache.get(key(1)), 'one', 'it is not told as a failure')
  t.throws(() => cache.flush(), {
    code: 'E_CACHE',
    message: /cache\.db: another process has held the cache for 0\.3 s: look what it does \(fuser .*\)/,
  })
  holder.tell()
  t.equal((await holder.ended).status, 0)
})

t.test('waiting is said once, and ends with the writer', async t => {
  const { file, holder } = await held('b')
  const warnings: string[] = []
  const cache = openCache({
    file,
    patienceMs: 60_000,
    warn: message => {
      warnings.push(message)
      holder.child.kill('SIGKILL')
    },
  })
  cache.put(key(1), 'one')
  cache.flush()
  t.match(warnings, [/cache\.db: waiting for another process that writes to the cache/])
  t.equal(warnings.length, 1)
  cache.close()
  const after = openCache({ file })
  t.equal(after.get(key(1)), 'one')
  after.close()
})
