import { createRequire } from 'node:module'
import type { Database } from 'better-sqlite3'

/**
 * Opens a connection. Statements wait `busyMs` for other processes. SQLite is loaded here, so that a cg without it can say so.
 *
 * One that is `readonly` changes nothing, not even when it is closed: another one that is the last writes the log into the database then.
 */
export function connect(file: string, busyMs: number, readonly = false): Database {
  const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (
    file: string,
    options: { timeout: number; readonly: boolean },
  ) => Database
  return new Sqlite(file, { timeout: busyMs, readonly })
}
