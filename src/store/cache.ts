/**
 * The cache of finished work: one SQLite file shared by every process of a pipe and by several pipes at once.
 *
 * A key is the sha256 of canonical JSON {stage, stage version, input digest, deciding options}; a value is the set of fields that a stage adds, so that a hit,
 * merged onto the live record, gives the bytes of a miss. Failures are never cached; no secret is in a key or a value.
 */
export type CacheKey = { stage: string; version: number; [part: string]: unknown }

export interface Cache {
  /**
   * Undefined: not there, or `--refresh`. Throws RecordFault E_CACHE_MISS with `--cache-only`. `probe` is exempt from both: for parts of the work that are not
   * its result.
   */
  get(key: CacheKey, options?: { probe?: boolean }): unknown | undefined
  /** Queued; committed at most a second later, and by `flush`. */
  put(key: CacheKey, value: unknown, options?: { table?: 'results' | 'on-policy' }): void
  /** Commits now: before a barrier, and before emitting what cannot be computed again. */
  flush(): void
  close(): void
}

/** `--no-cache`. */
export const noCache: Cache = { get: () => undefined, put: () => {}, flush: () => {}, close: () => {} }
