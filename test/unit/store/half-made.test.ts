import { copyFileSync, existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import t from 'tap'
import { openCache } from '#cg/store/sqlite-cache.js'

const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Database

/** The state on the disk in the middle of the first transaction on a file that was made by `begin`: the database as far as it is written, and a journal to roll it back. */
function killedWhileWriting(dir: string, begin: (db: Database) => void): string {
  const db = new Sqlite(join(dir, 'whole.db'))
  begin(db)
  db.pragma('cache_size = 2') // pages have to go to the disk before the commit
  db.exec('BEGIN IMMEDIATE; CREATE TABLE t (x)')
  for (let n = 0; n < 50; n++) db.prepare('INSERT INTO t VALUES (zeroblob(3000))').run()
  const file = join(dir, 'cache.db')
  for (const end of ['', '-journal']) copyFileSync(join(dir, `whole.db${end}`), file + end)
  db.exec('ROLLBACK')
  db.close()
  return file
}

t.test('a cache whose maker was killed between its first page and its commit is made again', async t => {
  const file = killedWhileWriting(t.testdir(), () => {})
  truncateSync(file, 4096)
  const said: string[] = []
  const cache = openCache({ file, warn: message => said.push(message) })
  cache.put({ stage: 's', version: 1 }, 7)
  cache.flush()
  t.equal(cache.get({ stage: 's', version: 1 }), 7)
  cache.close()
  t.same(said, [])
  t.notOk(existsSync(`${file}-journal`))
})

t.test('a half-written file of another program is refused, and left for it to roll back', async t => {
  const dir = t.testdir()
  const file = killedWhileWriting(dir, db => {
    db.pragma('application_id = 7')
    db.exec('CREATE TABLE theirs (x)')
  })
  const before = readdirSync(dir).map(name => [name, readFileSync(join(dir, name))])
  t.throws(() => openCache({ file }).get({ stage: 's', version: 1 }), { code: 'E_CACHE', message: /an SQLite file, but not a cg cache/ })
  t.same(
    readdirSync(dir)
      .filter(name => !name.endsWith('-lock'))
      .map(name => [name, readFileSync(join(dir, name))]),
    before,
  )
})
