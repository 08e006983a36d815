import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import t from 'tap'
import type { Cache } from '#cg/store/cache.js'
import { evictCache } from '#cg/store/evict.js'
import { keyDigest } from '#cg/store/key.js'
import { openCache } from '#cg/store/sqlite-cache.js'
import { checksum1 } from '#cg/store/value.js'
import { cacheProcess } from './a-cache-process.js'

const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Database
const dir = mkdtempSync(join(tmpdir(), 'cg-damaged-'))
t.teardown(() => rmSync(dir, { recursive: true, force: true }))
let files = 0
const key = (n: number) => ({ stage: 'test', version: 1, n })
const value = (n: number) => ({ n, text: `${n} `.repeat(700) })
const rows = 200

/** A cache of some hundred pages, closed in order. */
function filled(): string {
  const file = join(dir, String(++files), 'cache.db')
  const cache = openCache({ file })
  for (let n = 0; n < rows; n++) cache.put(key(n), value(n))
  cache.close()
  return file
}

function overwrite(file: string, from: number, bytes: Buffer): void {
  const fd = openSync(file, 'r+')
  writeSync(fd, bytes, 0, bytes.length, from)
  closeSync(fd)
}

/** How many rows are there, each with its value. */
function known(cache: Cache): number {
  const found = Array.from({ length: rows }, (_, n) => [n, cache.get(key(n))] as const).filter(([, value]) => value !== undefined)
  return found.filter(([n, found]) => JSON.stringify(found) === JSON.stringify(value(n))).length
}

const asides = (file: string) =>
  readdirSync(dirname(file))
    .filter(name => name.includes('.damaged-'))
    .map(name => join(dirname(file), name))

function opened(file: string) {
  const warnings: string[] = []
  return { cache: openCache({ file, warn: message => warnings.push(message) }), warnings }
}

const noise = (bytes: number) => Buffer.from(Array.from({ length: bytes }, (_, i) => (Math.imul(i + 1, 0x9e3779b1) >>> 24) | 1))

for (const [what, spoil] of [
  ['no database', file => writeFileSync(file, noise(50_000))],
  ['text', file => writeFileSync(file, 'this is no database, but long enough to look at '.repeat(40))],
  ['a head of zeros', file => overwrite(file, 0, Buffer.alloc(4096))],
  ['a broken table of contents', file => overwrite(file, 100, noise(3000))],
  ['a cut', file => writeFileSync(file, readFileSync(file).subarray(0, 3 * 4096))],
] satisfies [string, (file: string) => void][])
  t.test(`${what}: said and set aside as it is, and the work goes on`, async t => {
    const file = filled()
    spoil(file)
    const bytes = readFileSync(file)
    const { cache, warnings } = opened(file)
    t.equal(known(cache), 0)
    cache.put(key(1), 'new')
    cache.close()
    const [aside, ...more] = asides(file).filter(name => !/-(wal|shm)$/.test(name))
    t.same(more, [])
    t.match(warnings, [new RegExp(`^${file}: the cache is damaged \\(.+\\): set aside as ${aside}, a new one begins$`)])
    t.equal(warnings.length, 1)
    t.same(readFileSync(aside!), bytes)
    const again = opened(file)
    t.equal(again.cache.get(key(1)), 'new')
    again.cache.close()
    t.same(again.warnings, [])
  })

t.test('damage that is found later, while it is read or written', async t => {
  for (const how of ['get', 'put'] as const) {
    const file = filled()
    const { cache, warnings } = opened(file)
    t.same(cache.get(key(0), {}), value(0))
    cache.put(key(1000), 'queued before')
    const size = statSync(file).size
    overwrite(file, 4096, noise(size - 4096))
    if (how === 'get') for (let n = 1; n < rows; n++) cache.get(key(n))
    cache.put(key(1001), 'queued behind')
    cache.close()
    t.equal(warnings.filter(message => /set aside as/.test(message)).length, 1, how)
    t.equal(asides(file).length, 1)
    const { cache: after } = opened(file)
    t.equal(after.get(key(1000)), 'queued before')
    t.equal(after.get(key(1001)), 'queued behind')
    after.close()
  }
})

t.test('a log of another database is damage, not somebody else’s file', async t => {
  const file = filled()
  const mail = new Sqlite(join(dir, 'mail.db'))
  mail.pragma('journal_mode = WAL')
  mail.exec(`CREATE TABLE mail (body TEXT); INSERT INTO mail VALUES ('x')`)
  copyFileSync(join(dir, 'mail.db-wal'), `${file}-wal`)
  mail.close()
  const { cache, warnings } = opened(file)
  t.equal(cache.get(key(0)), undefined)
  cache.close()
  t.match(warnings, [/the log beside it belongs to another database.*set aside as/])
  t.same(
    asides(file).map(name => basename(name).replace(/T\d+/, '')).length,
    asides(file).filter(name => /\.damaged-\d{8}T\d{6}(-wal|-shm)?$/.test(name)).length,
  )
  t.ok(asides(file).some(name => name.endsWith('-wal')))
})

t.test('a log without its database, as a kill in between leaves it, is set aside too', async t => {
  const file = filled()
  writeFileSync(`${file}-wal`, noise(5000))
  writeFileSync(`${file}-shm`, noise(32_768))
  renameSync(file, `${file}.elsewhere`)
  const { cache, warnings } = opened(file)
  cache.put(key(1), 'new')
  cache.close()
  t.match(warnings, [/the log of a cache that is gone is set aside as .*-wal/])
  t.equal(asides(file).length, 2)
})

t.test('pruning sets a damaged file aside; counting what would go leaves it', async t => {
  const file = filled()
  overwrite(file, 4096, noise(statSync(file).size - 4096))
  const bytes = readFileSync(file)
  t.throws(() => evictCache(file, { dryRun: true }), { code: 'E_CACHE', message: /the cache is damaged/ })
  t.same(readFileSync(file), bytes)
  const warnings: string[] = []
  t.same(evictCache(file, { olderThan: -1, warn: message => warnings.push(message) }), { rows: 0, bytes: 0 })
  t.match(warnings, [/set aside as/])
})

t.test('a value under the key of another one is none', async t => {
  const file = filled()
  const db = new Sqlite(file)
  db.prepare(
    'UPDATE results SET (value, packed, checksum) = (SELECT value, packed, checksum FROM results WHERE key = ?) WHERE key = ?',
  ).run(keyDigest(key(1)), keyDigest(key(2)))
  db.exec(`UPDATE results SET packed = 1 WHERE key = X'${keyDigest(key(3)).toString('hex')}'`)
  db.close()
  const { cache, warnings } = opened(file)
  t.same(cache.get(key(1)), value(1))
  t.equal(cache.get(key(2)), undefined)
  t.equal(cache.get(key(3)), undefined)
  t.match(warnings, [/a damaged row of test is computed again/, /a damaged row/])
  cache.close()
})

t.test('a file of format 1 keeps what is whole in it', async t => {
  const file = filled()
  const db = new Sqlite(file)
  db.function('old', bytes => checksum1(bytes as Buffer))
  db.exec(
    `UPDATE results SET checksum = old(value); UPDATE results SET checksum = X'00' WHERE key = X'${keyDigest(key(5)).toString('hex')}'`,
  )
  db.pragma('user_version = 1')
  db.close()
  const { cache, warnings } = opened(file)
  t.equal(cache.get(key(5)), undefined)
  t.equal(known(cache), rows - 1)
  t.same(warnings, [])
  cache.close()
})

t.test('several processes find the damage at once: one sets it aside, and what they do from then on is kept', async t => {
  const file = filled()
  const processes = [0, 1, 2, 3].map(p =>
    cacheProcess(
      file,
      `const cache = open(); cache.get(key(0)); say('open'); await told()
       for (let n = 0; n < 100; n++) { cache.get(key(n)); cache.put(key(1000 * (${p} + 1) + n), n); if (n % 10 === 0) cache.flush() }
       cache.close(); for (const message of warnings) say(message)`,
    ),
  )
  for (const process of processes) await process.said('open')
  overwrite(file, 4096, noise(statSync(file).size - 4096))
  for (const process of processes) process.tell()
  const ends = await Promise.all(processes.map(({ ended }) => ended))
  t.same(
    ends.map(({ status }) => status),
    [0, 0, 0, 0],
  )
  const said = ends.flatMap(({ lines }) => lines.filter(line => /damaged/.test(line)))
  t.equal(said.filter(line => /set aside as/.test(line)).length, 1)
  t.equal(asides(file).filter(name => !/-(wal|shm)$/.test(name)).length, 1)
  const { cache } = opened(file)
  let lost = 0
  for (let p = 1; p <= 4; p++) for (let n = 0; n < 100; n++) if (cache.get(key(1000 * p + n)) !== n) lost++
  // what a process had committed into the old file before the damage was seen by any is gone with it; a flush after that is not
  t.ok(lost <= 4 * 10, `${lost} of 400 lost`)
  cache.close()
})

t.test('who still has the old one open goes on with the new one, and leaves its log alone', async t => {
  const file = filled()
  const other = cacheProcess(
    file,
    `const cache = open(); cache.get(key(0)); say('open'); await told(); cache.put(key(7000), 'other'); cache.flush(); say('flushed'); await told(); cache.close()`,
  )
  await other.said('open')
  renameSync(file, `${file}.damaged-x`)
  for (const end of ['-wal', '-shm']) if (existsSync(file + end)) renameSync(file + end, `${file}.damaged-x${end}`)
  const { cache } = opened(file)
  cache.put(key(7001), 'mine')
  cache.flush()
  other.tell()
  await other.said('flushed')
  t.equal(cache.get(key(7000)), 'other')
  other.tell()
  t.equal((await other.ended).status, 0)
  cache.put(key(7002), 'behind')
  cache.flush()
  t.ok(existsSync(`${file}-wal`), 'its log is still there')
  cache.close()
  const after = opened(file)
  for (const [n, what] of [
    [7000, 'other'],
    [7001, 'mine'],
    [7002, 'behind'],
  ] as const)
    t.equal(after.cache.get(key(n)), what)
  after.cache.close()
})

t.test('a file that somebody removes is begun anew', async t => {
  const file = filled()
  const { cache } = opened(file)
  t.same(cache.get(key(0)), value(0))
  rmSync(dirname(file), { recursive: true })
  mkdirSync(dirname(file))
  cache.put(key(1), 'new')
  cache.close()
  const after = opened(file)
  t.equal(after.cache.get(key(1)), 'new')
  after.cache.close()
})
