import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Database } from 'better-sqlite3'
import t, { type Test } from 'tap'
import type { Cache } from '#cg/store/cache.js'
import { noCache } from '#cg/store/cache.js'
import { defaultCacheFile } from '#cg/store/db.js'
import { evictCache } from '#cg/store/evict.js'
import { keyDigest } from '#cg/store/key.js'
import { type CacheOptions, openCache } from '#cg/store/sqlite-cache.js'

const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Database
const dir = mkdtempSync(join(tmpdir(), 'cg-cache-'))
let files = 0
const fresh = () => join(dir, `${++files}`, 'cache.db')
const key = (n: number, stage = 'test') => ({ stage, version: 1, n })

function open(t: Test, options: CacheOptions): Cache {
  const cache = openCache(options)
  t.teardown(() => cache.close())
  return cache
}

t.test('what was put is there, before the commit, after it, and for another process', async t => {
  const file = fresh()
  const cache = open(t, { file })
  const value = { files: ['a'], score: 0.1, nested: { none: null } }
  t.equal(cache.get(key(1)), undefined)
  cache.put(key(1), value)
  t.same(cache.get(key(1)), value)
  cache.flush()
  t.same(cache.get(key(1)), value)
  t.same(open(t, { file }).get(key(1)), value)
})

t.test('a file is made only when it is needed', async t => {
  const file = fresh()
  const cache = openCache({ file })
  cache.flush()
  cache.close()
  t.throws(() => statSync(file), { code: 'ENOENT' })
})

t.test('commits come by themselves within about a second', async t => {
  const file = fresh()
  open(t, { file }).put(key(1), 'x')
  const other = open(t, { file })
  for (let n = 0; n < 60 && other.get(key(1)) === undefined; n++) await sleep(50)
  t.equal(other.get(key(1)), 'x')
})

t.test('large values are packed', async t => {
  const file = fresh()
  const cache = open(t, { file })
  const large = { text: 'abc '.repeat(50_000) }
  cache.put(key(1), large)
  cache.put(key(2), { text: 'abc' })
  cache.flush()
  t.same(cache.get(key(1)), large)
  const rows = new Sqlite(file).prepare('SELECT packed, length(value) AS bytes FROM results ORDER BY bytes').all() as {
    packed: number
    bytes: number
  }[]
  t.match(rows, [{ packed: 0, bytes: 14 }, { packed: 1 }])
  t.ok(rows[1]!.bytes < 5000)
})

t.test('keys are their canonical JSON', async t => {
  t.same(keyDigest({ version: 1, stage: 's', a: { y: 1, x: 2 } }), keyDigest({ a: { x: 2, y: 1 }, stage: 's', version: 1 }))
  t.not(keyDigest(key(1)).toString('hex'), keyDigest({ ...key(1), version: 2 }).toString('hex'))
  t.equal(keyDigest(key(1)).length, 32)
})

t.test('--refresh finds nothing and replaces; a probe is exempt', async t => {
  const file = fresh()
  const old = openCache({ file })
  old.put(key(1), 'old')
  old.close()
  const cache = open(t, { file, refresh: true })
  t.equal(cache.get(key(1)), undefined)
  t.equal(cache.get(key(1), { probe: true }), 'old')
  cache.put(key(1), 'new')
  cache.flush()
  t.equal(open(t, { file }).get(key(1)), 'new')
})

t.test('--cache-only: a miss is a fault; a probe is exempt', async t => {
  const file = fresh()
  const cache = open(t, { file, only: true })
  t.throws(() => cache.get(key(1, 'rollout')), {
    name: 'RecordFault',
    code: 'E_CACHE_MISS',
    message: /not in the cache \(rollout\): run it once without --cache-only/,
  })
  t.equal(cache.get(key(1), { probe: true }), undefined)
  cache.put(key(1), 'x')
  t.equal(cache.get(key(1)), 'x')
})

t.test('--no-cache', async t => {
  noCache.put(key(1), 'x')
  t.equal(noCache.get(key(1)), undefined)
})

t.test('a damaged row counts as not there, and is said', async t => {
  const file = fresh()
  const first = openCache({ file })
  first.put(key(1), 'x')
  first.put(key(2), 'y'.repeat(10_000))
  first.close()
  const db = new Sqlite(file)
  db.exec("UPDATE results SET value = X'22782220'")
  db.close()
  const warnings: string[] = []
  const cache = open(t, { file, warn: message => warnings.push(message) })
  t.equal(cache.get(key(1)), undefined)
  t.equal(cache.get(key(2)), undefined)
  t.equal(warnings.length, 2)
  t.match(warnings[0], /a damaged row of test is computed again/)
  cache.put(key(1), 'x')
  cache.flush()
  t.equal(cache.get(key(1)), 'x')
})

t.test('a file of a newer cg is refused, and left as it is', async t => {
  const file = fresh()
  openOnce(file)
  const db = new Sqlite(file)
  db.pragma('user_version = 7')
  db.close()
  t.throws(() => openOnce(file), {
    name: 'FatalError',
    code: 'E_CACHE_NEWER',
    message: /written by a newer cg \(format 7; this one knows 2\): upgrade cg, or name another --cache/,
  })
  const after = new Sqlite(file)
  t.equal(after.pragma('user_version', { simple: true }), 7)
  after.close()
})

t.test('files of somebody else are refused, and left as they are', async t => {
  const foreign = join(dir, 'foreign.db')
  const db = new Sqlite(foreign)
  db.exec('CREATE TABLE mail (body TEXT)')
  db.close()
  const bytes = readFileSync(foreign)
  t.throws(() => openOnce(foreign), { code: 'E_CACHE', message: /an SQLite file, but not a cg cache: name another --cache/ })
  t.same(readFileSync(foreign), bytes)
  writeFileSync(foreign, Buffer.concat([bytes.subarray(0, 100), Buffer.alloc(bytes.length - 100, 1)]))
  t.throws(() => openOnce(foreign), { code: 'E_CACHE', message: /an SQLite file, but not a cg cache/ }, 'a damaged one too')
  for (const records of ['{"instance_id":"a"}\n', '[\n  {}\n]\n', gzipSync('{}\n')]) {
    const file = join(dir, 'rows.ndjson')
    writeFileSync(file, records)
    t.throws(() => openOnce(file), { code: 'E_CACHE', message: /records, not a cg cache: name another --cache/ })
    t.same(readFileSync(file), Buffer.from(records))
  }
  t.throws(() => openOnce(dir), { code: 'E_CACHE', message: /cannot use the cache .*--no-cache/ })
  t.same(
    readdirSync(dir).filter(name => name.includes('damaged')),
    [],
  )
})

function openOnce(file: string) {
  const cache = openCache({ file })
  try {
    cache.get(key(0))
  } finally {
    cache.close()
  }
}

t.test('rollouts of on-policy runs take bounded room; results do not', async t => {
  const file = fresh()
  const cache = open(t, { file, onPolicyBytes: 100_000 })
  for (let n = 0; n < 100; n++) {
    cache.put(key(n, 'rollout'), `${n}`.padEnd(4000, 'x'), { table: 'on-policy' })
    cache.put(key(n, 'tool'), `${n}`.padEnd(4000, 'x'))
    if (n % 5 === 4) cache.flush()
  }
  cache.flush()
  const db = new Sqlite(file)
  const bytes = (table: string) => (db.prepare(`SELECT sum(length(value)) AS n FROM "${table}"`).get() as { n: number }).n
  t.ok(bytes('on-policy') <= 106_250, `${bytes('on-policy')} bytes`)
  t.ok(bytes('on-policy') > 60_000)
  t.equal(bytes('results'), 100 * 4002)
  t.ok(cache.get(key(99, 'rollout')), 'the newest are kept')
  db.close()
})

t.test('eviction by age and by size', async t => {
  const file = fresh()
  const cache = openCache({ file })
  for (let n = 0; n < 10; n++) cache.put(key(n), 'x'.repeat(998))
  cache.close()
  const db = new Sqlite(file)
  const now = Math.floor(Date.now() / 1000)
  for (let n = 0; n < 10; n++) db.prepare('UPDATE results SET used = ? WHERE key = ?').run(now - n * 1000, keyDigest(key(n)))
  db.close()
  const found = () => {
    const cache = openCache({ file })
    const there = Array.from({ length: 10 }, (_, n) => n).filter(n => cache.get(key(n)) !== undefined)
    cache.close()
    return there
  }
  t.same(evictCache(file, { olderThan: 7500, dryRun: true }), { rows: 2, bytes: 2000 })
  t.equal(found().length, 10)
  // what was just found counts as used only after hours: nothing changed by looking
  t.same(evictCache(file, { olderThan: 7500 }), { rows: 2, bytes: 2000 })
  t.same(found(), [0, 1, 2, 3, 4, 5, 6, 7])
  t.same(evictCache(file, { maxBytes: 3500 }), { rows: 5, bytes: 5000 })
  t.same(found(), [0, 1, 2])
  t.same(evictCache(file, {}), { rows: 0, bytes: 0 })
})

t.test('eviction gives the space back', async t => {
  const file = fresh()
  const cache = openCache({ file })
  for (let n = 0; n < 200; n++) cache.put(key(n), createHash('sha512').update(`${n}`).digest('hex').repeat(30))
  cache.close()
  const before = statSync(file).size
  evictCache(file, { maxBytes: 0 })
  t.ok(statSync(file).size < before / 4, `${before} became ${statSync(file).size}`)
})

t.test('a value that was found after hours counts as used', async t => {
  const file = fresh()
  const cache = openCache({ file })
  cache.put(key(1), 'x')
  cache.flush()
  const db = new Sqlite(file)
  db.exec('UPDATE results SET used = 1')
  t.equal(cache.get(key(1)), 'x')
  cache.close()
  t.ok((db.prepare('SELECT used FROM results').get() as { used: number }).used > 1)
  db.close()
})

t.test('three processes write at once and lose nothing', async t => {
  const file = fresh()
  const script = `
    import { openCache } from ${JSON.stringify(resolve('dist/store/sqlite-cache.js'))}
    const cache = openCache({ file: process.argv[1] })
    for (let n = 0; n < 300; n++) { cache.put({ stage: 'p' + process.argv[2], version: 1, n }, n); if (n % 7 === 0) cache.flush() }
    cache.close()`
  const statuses = await Promise.all(
    [0, 1, 2].map(
      p =>
        new Promise(resolve =>
          spawn(process.execPath, ['--input-type=module', '-e', script, file, String(p)], { stdio: 'inherit' }).on('close', resolve),
        ),
    ),
  )
  t.same(statuses, [0, 0, 0])
  const cache = open(t, { file })
  for (let p = 0; p < 3; p++)
    for (let n = 0; n < 300; n++) if (cache.get({ stage: `p${p}`, version: 1, n }) !== n) t.fail(`p${p} ${n} is lost`)
  t.equal(cache.get({ stage: 'p2', version: 1, n: 299 }), 299)
})

t.test('where the cache is', async t => {
  const { CG_CACHE, XDG_CACHE_HOME } = process.env
  process.env.CG_CACHE = '/x/y.db'
  t.equal(defaultCacheFile(), '/x/y.db')
  delete process.env.CG_CACHE
  process.env.XDG_CACHE_HOME = '/xdg'
  t.equal(defaultCacheFile(), '/xdg/cg/cache.db')
  delete process.env.XDG_CACHE_HOME
  t.match(defaultCacheFile(), /\/\.cache\/cg\/cache\.db$/)
  if (CG_CACHE !== undefined) process.env.CG_CACHE = CG_CACHE
  if (XDG_CACHE_HOME !== undefined) process.env.XDG_CACHE_HOME = XDG_CACHE_HOME
})
