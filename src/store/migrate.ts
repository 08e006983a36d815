import type { Database } from 'better-sqlite3'
import { FatalError } from '../record/fault.js'
import { checksum, checksum1 } from './value.js'

/** 'cg' and a number of our own: tells our file from any other SQLite file. */
export const applicationId = 0x63670001

/** As SQL writes them. */
export const quotedTables = ['results', '"on-policy"']

/** Each brings the file from version n to n + 1; never change one that was released. */
const migrations: ((db: Database) => void)[] = [
  db => {
    for (const table of quotedTables)
      db.exec(
        `CREATE TABLE ${table} (
           key BLOB PRIMARY KEY,
           stage TEXT NOT NULL,
           value BLOB NOT NULL,
           packed INTEGER NOT NULL,
           checksum BLOB NOT NULL,
           used INTEGER NOT NULL
         ) WITHOUT ROWID;`,
      )
  },
  // The checksum covers the key: pages in the wrong place can bring a value under another one's key.
  db => {
    db.function('checksum_1', { deterministic: true }, value => (Buffer.isBuffer(value) ? checksum1(value) : null))
    db.function('checksum_2', { deterministic: true }, (key, packed, value) => checksum(key as Buffer, packed as number, value as Buffer))
    for (const table of quotedTables)
      db.exec(
        `DELETE FROM ${table} WHERE checksum_1(value) IS NOT checksum;
         UPDATE ${table} SET checksum = checksum_2(key, packed, value);`,
      )
  },
]

/**
 * The version of an open file, 0 for a new one. Only reads.
 *
 * Throws FatalError E_CACHE_NEWER for a file that a newer cg wrote, ForeignDatabase for one of another program.
 */
export function versionOf(db: Database, file: string): number {
  const version = db.pragma('user_version', { simple: true }) as number
  const ours = db.pragma('application_id', { simple: true }) === applicationId
  if (!ours && db.prepare('SELECT 1 FROM sqlite_master').get() !== undefined) throw new ForeignDatabase()
  if (ours && version > migrations.length)
    throw new FatalError(
      'E_CACHE_NEWER',
      `${file}: written by a newer cg (format ${version}; this one knows ${migrations.length}): upgrade cg, or name another --cache`,
    )
  return ours ? version : 0
}

/** Brings an open file to the version of this cg. Throws what versionOf throws. */
export function migrate(db: Database, file: string): void {
  if (versionOf(db, file) === migrations.length) return
  db.transaction(() => {
    for (const step of migrations.slice(versionOf(db, file))) step(db)
    db.pragma(`application_id = ${applicationId}`)
    db.pragma(`user_version = ${migrations.length}`)
  }).immediate()
}

/** The tables are those of another program; or the log beside the file is. */
export class ForeignDatabase extends Error {}
