/** SQLite's result codes (sqlite.org/rescode.html) by what there is to do about them. */

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Another process is at the file: try again. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(codeOf(error))
}

/**
 * The bytes of the file are not what SQLite or this cache wrote. SQLITE_ERROR is a table or column that is not there, TOOBIG a length that nobody wrote,
 * IOERR_SHORT_READ a file that was cut while it was open.
 */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(CORRUPT|NOTADB|ERROR|TOOBIG|FORMAT|MISMATCH|SCHEMA|IOERR_SHORT_READ)/.test(codeOf(error))
}

/** A process was killed while it wrote, and what it left is to be rolled back first: a connection that only reads cannot. */
export function isUnrecovered(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_READONLY')
}

/** What went wrong with a cache file and what to do, for a FatalError E_CACHE. */
export function reason(error: unknown): string {
  const { message } = error as Error
  if (['MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'].includes(codeOf(error)) || /bindings file/.test(message))
    return 'SQLite is not built: run make, or use --no-cache'
  if (isDamage(error)) return `the cache is damaged (${message}): remove the file, or name another --cache`
  if (codeOf(error) === 'SQLITE_FULL') return 'no space left for the cache: free some space, name another --cache, or use --no-cache'
  return `cannot use the cache (${message}): free some space, name another --cache, or use --no-cache`
}
