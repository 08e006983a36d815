import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { FatalError } from '../record/fault.js'

/** 'cg' and a number of our own: tells our file from any other SQLite file. */
const applicationId = 0x63670001

/** Each brings the file from version n to n + 1; never change one that was released. */
const migrations: string[] = [
  `CREATE TABLE results (
     key BLOB PRIMARY KEY,
     stage TEXT NOT NULL,
     value BLOB NOT NULL,
     packed INTEGER NOT NULL,
     checksum BLOB NOT NULL,
     used INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE "on-policy" (
     key BLOB PRIMARY KEY,
     stage TEXT NOT NULL,
     value BLOB NOT NULL,
     packed INTEGER NOT NULL,
     checksum BLOB NOT NULL,
     used INTEGER NOT NULL
   ) WITHOUT ROWID;`,
]

/** The cache file unless one is named: $CG_CACHE, else cg/cache.db in the XDG cache directory. */
export function defaultCacheFile(): string {
  return process.env.CG_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'cg', 'cache.db')
}

/**
 * Opens a cache file, making or migrating it: WAL, so that readers and a writer do not wait for each other; a long busy timeout, because every process of a
 * pipe writes here.
 *
 * Throws FatalError: E_CACHE_NEWER for a file that a newer cg wrote, E_CACHE for one that is no cache or cannot be opened.
 */
export function openDatabase(file: string): Database {
  let db: Database | undefined
  try {
    mkdirSync(dirname(file), { recursive: true })
    const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string, options: { timeout: number }) => Database
    db = new Sqlite(file, { timeout: 20_000 })
    db.pragma('auto_vacuum = INCREMENTAL') // takes effect on an empty file only, before its first table
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    migrate(db, file)
    return db
  } catch (error) {
    db?.close()
    throw error instanceof FatalError ? error : new FatalError('E_CACHE', `${file}: ${reason(error as Error & { code?: string })}`)
  }
}

function migrate(db: Database, file: string): void {
  const version = () => db.pragma('user_version', { simple: true }) as number
  if (version() === migrations.length && db.pragma('application_id', { simple: true }) === applicationId) return
  db.transaction(() => {
    const found = version()
    const ours = db.pragma('application_id', { simple: true }) === applicationId
    if (!ours && db.prepare('SELECT 1 FROM sqlite_master').get() !== undefined)
      throw new FatalError('E_CACHE', `${file}: an SQLite file, but not a cg cache: name another --cache`)
    if (found > migrations.length)
      throw new FatalError(
        'E_CACHE_NEWER',
        `${file}: written by a newer cg (format ${found}; this one knows ${migrations.length}): upgrade cg, or name another --cache`,
      )
    for (const sql of migrations.slice(found)) db.exec(sql)
    db.pragma(`application_id = ${applicationId}`)
    db.pragma(`user_version = ${migrations.length}`)
  }).immediate()
}

function reason(error: Error & { code?: string }): string {
  if (error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_DLOPEN_FAILED' || /bindings file/.test(error.message))
    return 'SQLite is not built: run make, or use --no-cache'
  if (error.code === 'SQLITE_NOTADB') return 'not a cg cache: name another --cache, or remove the file'
  if (error.code === 'SQLITE_CORRUPT') return 'the cache is damaged: remove the file'
  if (error.code === 'SQLITE_BUSY') return 'locked by another process for 20 s: try again, or name another --cache'
  if (/^SQLITE_(FULL|IOERR)|^ENOSPC/.test(error.code ?? ''))
    return `cannot open the cache (${error.message}): free some space, name another --cache, or use --no-cache`
  return `cannot open the cache (${error.message}): name another --cache, or use --no-cache`
}
