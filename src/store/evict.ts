import type { Database } from 'better-sqlite3'
import { openDatabase } from './db.js'

export type Evicted = { rows: number; bytes: number }

/** Rows of one transaction, so that no other process waits long. */
const batch = 500

/**
 * Evicts cached work from a file: what was not used for `olderThan` seconds, and then the longest unused until at most `maxBytes` of values are left.
 *
 * Counts, without deleting, when `dryRun`. Space goes back to the file system. Throws FatalError E_CACHE for a file that is no cache.
 */
export function evictCache(
  file: string,
  { olderThan, maxBytes, dryRun = false }: { olderThan?: number; maxBytes?: number; dryRun?: boolean },
): Evicted {
  const db = openDatabase(file)
  try {
    const before = olderThan === undefined ? -1 : Math.floor(Date.now() / 1000) - olderThan
    const rows = db
      .prepare(
        `SELECT 'results' AS name, key, used, length(value) AS bytes FROM results UNION ALL SELECT 'on-policy', key, used, length(value) FROM "on-policy" ORDER BY used, key`,
      )
      .all() as { name: string; key: Buffer; used: number; bytes: number }[]
    let left = rows.reduce((sum, { bytes }) => sum + bytes, 0)
    const doomed = rows.filter(({ used, bytes }) => {
      const out = used < before || left > (maxBytes ?? Number.POSITIVE_INFINITY)
      if (out) left -= bytes
      return out
    })
    if (!dryRun) {
      for (let from = 0; from < doomed.length; from += batch)
        db.transaction(() => {
          for (const { name, key } of doomed.slice(from, from + batch)) db.prepare(`DELETE FROM "${name}" WHERE key = ?`).run(key)
        }).immediate()
      db.pragma('incremental_vacuum')
      db.pragma('wal_checkpoint(TRUNCATE)')
    }
    return { rows: doomed.length, bytes: doomed.reduce((sum, { bytes }) => sum + bytes, 0) }
  } finally {
    db.close()
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
  db.pragma('incremental_vacuum')
}
