import type { Database } from 'better-sqlite3'
import { FatalError } from '../record/fault.js'
import { openDatabase, replaceDamaged } from './db.js'
import { isDamage, reason } from './failure.js'
import { patiently } from './patience.js'

export type Evicted = { rows: number; bytes: number }
export type EvictOptions = { olderThan?: number; maxBytes?: number; dryRun?: boolean; warn?(message: string): void }

/** Rows, and pages given back, of one transaction, so that no other process waits long. */
const batch = 500

/**
 * Evicts cached work from a file: what was not used for `olderThan` seconds, and then the longest unused until at most `maxBytes` of values are left.
 *
 * Counts, without deleting, when `dryRun`. Space goes back to the file system. A damaged file is said and set aside, or refused when `dryRun`. Throws FatalError
 * E_CACHE for a file that is no cache.
 */
export function evictCache(file: string, options: EvictOptions): Evicted {
  const { db, identity } = openDatabase(file, { warn: options.warn, keep: options.dryRun ?? false })
  let damage: unknown
  try {
    return evict(db, file, options)
  } catch (error) {
    if (error instanceof FatalError) throw error
    if (!isDamage(error) || options.dryRun) throw new FatalError('E_CACHE', `${file}: ${reason(error)}`)
    damage = error
  } finally {
    db.close()
  }
  replaceDamaged(file, identity, damage, options)
  return { rows: 0, bytes: 0 }
}

function evict(db: Database, file: string, { olderThan, maxBytes, dryRun = false, warn }: EvictOptions): Evicted {
  const before = olderThan === undefined ? -1 : Math.floor(Date.now() / 1000) - olderThan
  const list = db.prepare(
    `SELECT 'results' AS name, key, used, length(value) AS bytes FROM results UNION ALL SELECT 'on-policy', key, used, length(value) FROM "on-policy" ORDER BY used, key`,
  )
  const rows = patiently(file, { warn }, () => list.all()) as { name: string; key: Buffer; used: number; bytes: number }[]
  let left = rows.reduce((sum, { bytes }) => sum + bytes, 0)
  const doomed = rows.filter(({ used, bytes }) => {
    const out = used < before || left > (maxBytes ?? Number.POSITIVE_INFINITY)
    if (out) left -= bytes
    return out
  })
  if (!dryRun) {
    const remove = db.transaction((some: typeof rows) => {
      for (const { name, key } of some) db.prepare(`DELETE FROM "${name}" WHERE key = ?`).run(key)
    })
    for (let from = 0; from < doomed.length; from += batch)
      patiently(file, { warn }, () => remove.immediate(doomed.slice(from, from + batch)))
    patiently(file, { warn }, () => giveBack(db))
    db.pragma('wal_checkpoint(TRUNCATE)')
  }
  return { rows: doomed.length, bytes: doomed.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** Gives free pages back to the file system. */
function giveBack(db: Database): void {
  const free = () => db.pragma('freelist_count', { simple: true }) as number
  for (let pages = free(), left = -1; pages > 0 && pages !== left; pages = free()) {
    left = pages
    db.pragma(`incremental_vacuum(${batch})`)
  }
}

/** Deletes the longest unused rows of a table until its values take nine tenths of `maxBytes`; nothing while they take no more than that. */
export function dropOldest(db: Database, table: string, maxBytes: number): void {
  const size = () => (db.prepare(`SELECT coalesce(sum(length(value)), 0) AS bytes FROM "${table}"`).get() as { bytes: number }).bytes
  let bytes = size()
  if (bytes <= maxBytes) return
  const oldest = db.prepare(`SELECT key, length(value) AS bytes FROM "${table}" ORDER BY used, key LIMIT ${batch}`)
  const remove = db.prepare(`DELETE FROM "${table}" WHERE key = ?`)
  while (bytes > maxBytes * 0.9) {
    const rows = oldest.all() as { key: Buffer; bytes: number }[]
    if (rows.length === 0) return
    db.transaction(() => {
      for (const row of rows) {
        if (bytes <= maxBytes * 0.9) return
        remove.run(row.key)
        bytes -= row.bytes
      }
    }).immediate()
  }
  giveBack(db)
}
