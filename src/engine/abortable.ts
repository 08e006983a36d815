import type { Cancel, CancelClass } from './native.js'

/** Runs native work that an AbortSignal can end: it then rejects with E_CANCELLED. The listener is gone when the work is, so one signal may serve thousands of requests. */
export async function abortable<T>(signal: AbortSignal | undefined, Cancel: CancelClass, run: (cancel?: Cancel) => Promise<T>): Promise<T> {
  if (!signal) return run()
  if (signal.aborted) throw Object.assign(new Error('cancelled'), { code: 'E_CANCELLED' })
  const cancel = new Cancel()
  const abort = () => cancel.cancel()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await run(cancel)
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
