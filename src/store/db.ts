import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { FatalError } from '../record/fault.js'
import { makeDirectory } from '../record/make-directory.js'
import { isDamage, isUnrecovered, reason } from './failure.js'
import { withFileLock } from './file-lock.js'
import { ForeignDatabase, migrate, quotedTables, versionOf } from './migrate.js'
import { patiently, type Waiting } from './patience.js'
import { type Identity, identityOf, setAside, setAsideLeftovers, whose } from './set-aside.js'
import { connect } from './sqlite.js'

/** The cache file unless one is named: $CG_CACHE, else cg/cache.db in the XDG cache directory. */
export function defaultCacheFile(): string {
  return process.env.CG_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'cg', 'cache.db')
}

export type OpenFile = { db: Database; identity: Identity }
export type OpenOptions = Waiting & {
  /** A damaged file is refused instead of set aside. */
  keep?: boolean
}

/**
 * Opens a cache file, making or migrating it: WAL, so that readers and a writer do not wait for each other.
 *
 * A damaged file is said and set aside, and a new one begun: it holds nothing that cannot be computed again. Throws FatalError: E_CACHE_NEWER for a file that a
 * newer cg wrote, E_CACHE for one of somebody else, and for one that cannot be opened or is held by another process for long.
 */
export function openDatabase(file: string, options: OpenOptions = {}): OpenFile {
  try {
    makeDirectory(dirname(file))
    return withFileLock(file, options, () => {
      const left = setAsideLeftovers(file)
      if (left) options.warn?.(`${file}: the log of a cache that is gone is set aside as ${left}-wal`)
      return open(file, options) ?? open(file, options, true)!
    })
  } catch (error) {
    throw error instanceof FatalError && error.code !== 'E_WRITE' ? error : new FatalError('E_CACHE', `${file}: ${reason(error)}`)
  }
}

/** Undefined: it was damaged and is set aside; not when this is the `last` try. */
function open(file: string, options: OpenOptions, last = false): OpenFile | undefined {
  const found = identityOf(file)
  let db: Database | undefined
  try {
    if (found !== undefined) patiently(file, options, busyMs => lookAt(file, busyMs))
    db = patiently(file, options, busyMs => prepared(file, busyMs))
    return { db, identity: identityOf(file)! }
  } catch (error) {
    const foreign = error instanceof ForeignDatabase
    if (found === undefined || last || !(foreign || isDamage(error))) throw foreign ? refusal(file) : error
    const owner = whose(file)
    if (owner === 'of another program') throw refusal(file)
    if (owner === 'records') throw new FatalError('E_CACHE', `${file}: records, not a cg cache: name another --cache`)
    if (options.keep) throw error
    sayAside(
      file,
      setAside(file, found),
      foreign ? 'the log beside it belongs to another database' : (error as Error).message,
      options.warn,
    )
    return undefined
  }
}

/** Before anything is written: it may be somebody else's, or its log. What a killed process left half-made shows no more than its first bytes. */
function lookAt(file: string, busyMs: number): void {
  const db = connect(file, busyMs, true)
  let unrecovered = false
  try {
    versionOf(db, file)
  } catch (error) {
    unrecovered = isUnrecovered(error)
    if (!unrecovered) throw error
  } finally {
    db.close()
  }
  if (unrecovered && whose(file) !== 'ours') throw refusal(file)
}

function prepared(file: string, busyMs: number): Database {
  const db = connect(file, busyMs)
  try {
    // takes effect on an empty file only, before its first table; on others it waits for the write lock
    if (versionOf(db, file) === 0) db.pragma('auto_vacuum = INCREMENTAL')
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    migrate(db, file)
    for (const table of quotedTables) db.prepare(`SELECT key, stage, value, packed, checksum, used FROM ${table}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function refusal(file: string): FatalError {
  return new FatalError('E_CACHE', `${file}: an SQLite file, but not a cg cache: name another --cache`)
}

/**
 * Sets a file aside in which damage was found while it was in use, unless another process has done so. Close the connection first.
 *
 * Throws FatalError E_CACHE when it cannot be renamed.
 */
export function replaceDamaged(file: string, identity: Identity, error: unknown, waiting: Waiting): void {
  try {
    withFileLock(file, waiting, () => sayAside(file, setAside(file, identity), (error as Error).message, waiting.warn))
  } catch (failure) {
    throw failure instanceof FatalError ? failure : new FatalError('E_CACHE', `${file}: ${reason(error)}`)
  }
}

function sayAside(file: string, aside: string | undefined, what: string, warn: Waiting['warn']): void {
  warn?.(
    aside === undefined
      ? `${file}: the cache was damaged (${what}); another process has set it aside`
      : `${file}: the cache is damaged (${what}): set aside as ${aside}, a new one begins`,
  )
}
