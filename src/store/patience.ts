import { FatalError } from '../record/fault.js'
import { isBusy } from './failure.js'

export type Waiting = {
  /** Told once when it takes long. */
  warn?: ((message: string) => void) | undefined
  /** How long another process may hold what is needed; default 20 s: a batch of evictions or a commit takes milliseconds, and a dead process holds nothing. */
  patienceMs?: number | undefined
}

/** After this it is said that somebody else is waited for. */
const quietMs = 2000

/**
 * Tries again while another process holds the file. Throws FatalError E_CACHE when that does not end.
 *
 * `attempt` gets the milliseconds that SQLite may wait by itself.
 */
export function patiently<T>(file: string, { warn, patienceMs = 20_000 }: Waiting, attempt: (busyMs: number) => T): T {
  const began = performance.now()
  for (let said = false; ; said = true) {
    try {
      return attempt(Math.min(quietMs, patienceMs))
    } catch (error) {
      if (!isBusy(error)) throw error
    }
    if (performance.now() - began >= patienceMs)
      throw new FatalError(
        'E_CACHE',
        `${file}: another process has held the cache for ${patienceMs / 1000} s: look what it does (fuser ${file}), name another --cache, or use --no-cache`,
      )
    if (!said) warn?.(`${file}: waiting for another process that writes to the cache`)
  }
}
