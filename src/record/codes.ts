/** Every code of a `fault` record or of an error that ends a command, with what it means (cg-record(5)). */
export const codes: Record<string, string> = {
  // lines and records
  E_PARSE: 'a line is not UTF-8, not JSON or not an object',
  E_CUT: 'a line is cut off',
  E_RECORD: 'a field of a record is missing or of the wrong type',
  E_VERSION: 'a record of a version that this cg does not know',
  E_LINE_LENGTH: 'a line longer than --max-line',
  E_NUMBER: 'a number that JSON cannot say was to be written',
  E_DEPTH: 'a record is nested too deeply',
  E_GROUP: 'a group of rollouts comes back, or its members disagree',
  E_TIMEOUT: 'a record took longer than --timeout',
  E_MAX_FAULTS: 'more faults than --max-faults',
  // files and cache
  E_READ: 'a file cannot be read',
  E_WRITE: 'a file or the standard output cannot be written',
  E_CACHE: 'the cache cannot be used',
  E_CACHE_NEWER: 'the cache was written by a newer cg',
  E_CACHE_MISS: 'with --cache-only: not in the cache',
}
