import type { Database, Statement } from 'better-sqlite3'
import { FatalError, RecordFault } from '../record/fault.js'
import type { Cache, CacheKey } from './cache.js'
import { openDatabase, replaceDamaged } from './db.js'
import { dropOldest } from './evict.js'
import { isBusy, isDamage, reason } from './failure.js'
import { keyDigest } from './key.js'
import { patiently, type Waiting } from './patience.js'
import { type Identity, identityOf } from './set-aside.js'
import { pack, type Stored, unpack } from './value.js'

export type Table = 'results' | 'on-policy'
const tables: readonly Table[] = ['results', 'on-policy']

export type CacheOptions = Waiting & {
  file: string
  /** Finds nothing, and replaces what is there. */
  refresh?: boolean
  /** What is not there is a fault. */
  only?: boolean
  /** Bytes that rollouts of on-policy runs may take; the oldest go. Default 1 GiB. */
  onPolicyBytes?: number
}

type Row = Stored & { key: Buffer; stage: string; table: Table }

/** Commit after this time, this many rows, this many bytes: whichever comes first. */
const commitMs = 1000
/** How long a commit that nobody waits for may hold up everything else. */
const shortMs = 100
const commitRows = 1000
const commitBytes = 16 * 2 ** 20
/** How stale `used` may be: a read is not to cost a write. */
const usedSeconds = 6 * 3600

/**
 * The cache in an SQLite file, opened at the first use. Writes are queued and committed in one immediate transaction; `get` sees what is queued.
 *
 * A row whose checksum is wrong counts as not there, and is said. A file that turns out to be damaged is said and set aside, and the work goes on with a new one,
 * as it does when another process has set it aside or somebody has removed it. While another process writes, the commits that come by themselves are put off;
 * `flush`, `close` and a full queue wait for it. Throws FatalError E_CACHE when the file cannot be used; a failed commit is told by the next call.
 */
export function openCache(options: CacheOptions): Cache {
  let open: Opened | undefined
  /** Twice damaged at once is more than bad luck. */
  const use = <T>(work: (db: Opened) => T, again = true): T => {
    open ??= prepare(options)
    try {
      return work(open)
    } catch (error) {
      if (!isDamage(error) || !again) throw error
      const { identity } = open
      open.close()
      open = undefined
      replaceDamaged(options.file, identity, error, options)
      return use(work, false)
    }
  }
  const queue = new Map<string, Row>()
  const touched = new Map<string, Row['table']>()
  let queued = 0
  let timer: NodeJS.Timeout | undefined
  let failed: FatalError | undefined

  const commit = (waits = true) => {
    clearTimeout(timer)
    timer = undefined
    if (failed) throw failed
    if (queue.size === 0 && touched.size === 0) return
    try {
      if (open && identityOf(options.file) !== open.identity) {
        open.close()
        open = undefined
      }
      const write = (busyMs: number) => use(db => db.commit([...queue.values()], touched, busyMs))
      if (waits) patiently(options.file, options, write)
      else write(shortMs)
    } catch (error) {
      if (!waits && isBusy(error)) {
        later()
        return
      }
      failed = error instanceof FatalError ? error : new FatalError('E_CACHE', `${options.file}: ${reason(error)}`)
      throw failed
    }
    queue.clear()
    touched.clear()
    queued = 0
  }
  const later = () => {
    timer ??= setTimeout(() => {
      try {
        commit(false)
      } catch {
        // told by the next call
      }
    }, commitMs).unref()
  }

  const find = (key: Buffer) => {
    try {
      return patiently(options.file, options, () => use(db => db.find(key)))
    } catch (error) {
      throw error instanceof FatalError ? error : new FatalError('E_CACHE', `${options.file}: ${reason(error)}`)
    }
  }

  return {
    get(key: CacheKey, { probe = false } = {}) {
      if (failed) throw failed
      if (options.refresh && !probe) return undefined
      const digest = keyDigest(key)
      const name = digest.toString('latin1')
      const waiting = queue.get(name)
      if (waiting) return unpack(digest, waiting)
      const found = find(digest)
      if (found) {
        const value = unpack(digest, found)
        if (value === undefined) options.warn?.(`${options.file}: a damaged row of ${key.stage} is computed again`)
        else {
          if (found.used < now() - usedSeconds) {
            touched.set(name, found.table)
            later()
          }
          return value
        }
      }
      if (options.only && !probe)
        throw new RecordFault('E_CACHE_MISS', `not in the cache (${key.stage}): run it once without --cache-only`, true)
      return undefined
    },
    put(key, value, { table = 'results' } = {}) {
      if (failed) throw failed
      const digest = keyDigest(key)
      const stored = pack(digest, value)
      queue.set(digest.toString('latin1'), { ...stored, key: digest, stage: key.stage, table })
      queued += stored.value.length
      if (queue.size >= commitRows || queued >= commitBytes) commit()
      else later()
    },
    flush: () => commit(),
    close() {
      try {
        commit()
      } finally {
        open?.close()
        open = undefined
      }
    },
  }
}

type Opened = {
  find(key: Buffer): (Stored & { used: number; table: Table }) | undefined
  /** `busyMs`: how long to wait for another process. */
  commit(rows: Row[], touched: ReadonlyMap<string, Table>, busyMs: number): void
  close(): void
  identity: Identity
}

function prepare({ file, onPolicyBytes = 2 ** 30, ...waiting }: CacheOptions): Opened {
  const { db, identity } = openDatabase(file, waiting)
  const each = (sql: (table: Table) => string) =>
    Object.fromEntries(tables.map(table => [table, db.prepare(sql(table))])) as Record<Table, Statement>
  const select = each(table => `SELECT value, packed, checksum, used FROM "${table}" WHERE key = ?`)
  const insert = each(table => `INSERT OR REPLACE INTO "${table}" (key, stage, value, packed, checksum, used) VALUES (?, ?, ?, ?, ?, ?)`)
  const touch = each(table => `UPDATE "${table}" SET used = ? WHERE key = ?`)
  const write = db.transaction((rows: Row[], touched: ReadonlyMap<string, Table>) => {
    for (const { key, stage, value, packed, checksum, table } of rows) insert[table].run(key, stage, value, packed, checksum, now())
    for (const [name, table] of touched) touch[table].run(now(), Buffer.from(name, 'latin1'))
  })
  let unchecked = Number.POSITIVE_INFINITY // bytes put into `on-policy` since its size was looked at; at first always look

  return {
    find(key) {
      for (const table of tables) {
        const row = select[table].get(key) as (Stored & { used: number }) | undefined
        if (row) return { ...row, table }
      }
      return undefined
    },
    identity,
    commit(rows, touched, busyMs) {
      db.pragma(`busy_timeout = ${busyMs}`)
      write.immediate(rows, touched)
      const added = rows.reduce((sum, { table, value }) => sum + (table === 'on-policy' ? value.length : 0), 0)
      unchecked += added
      if (added === 0 || unchecked < onPolicyBytes / 16) return
      unchecked = 0
      dropOldest(db, 'on-policy', onPolicyBytes)
    },
    close: () => closeQuietly(db),
  }
}

/** Other processes may be at it; then one of them truncates the log. */
function closeQuietly(db: Database): void {
  try {
    db.pragma('busy_timeout = 100')
    db.pragma('wal_checkpoint(TRUNCATE)')
  } catch {
    // busy: not ours to do; damaged: nothing to do
  }
  db.close()
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}
