import { createRequire } from 'node:module'
import type { Database } from 'better-sqlite3'

/** Opens a connection. Statements wait `busyMs` for other processes. SQLite is loaded here, so that a cg without it can say so. */
export function connect(file: string, busyMs: number): Database {
  const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string, options: { timeout: number }) => Database
  return new Sqlite(file, { timeout: busyMs })
}
