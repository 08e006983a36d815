/**
 * A commit as the tools see it: its tracked files, and nothing outside of them.
 *
 * A worktree implements it today and a snapshot of the object database may take over; callers notice nothing but speed. Paths are repository-relative POSIX
 * in bytewise order; links, submodules, `.git` and names that could leave the tree are not in it.
 */
export interface Tree {
  /** Tree object id: results are cached under it. */
  readonly id: string
  /** Tracked regular files in bytewise order. */
  list(signal?: AbortSignal): Promise<readonly string[]>
  /** Bytes of a tracked regular file, or the names in a folder (those of folders end in `/`); `missing` also for anything outside the tree. */
  read(
    path: string,
    signal?: AbortSignal,
  ): Promise<{ kind: 'file'; bytes: Uint8Array } | { kind: 'directory'; entries: string[] } | { kind: 'missing' }>
  grep(query: GrepQuery, signal?: AbortSignal): Promise<GrepResult>
}

export type GrepQuery = {
  /** ripgrep's dialect; linear time. */
  pattern: string
  /** Only files at or below this path. */
  path?: string
  /** Only files that match; a glob without `/` matches at any depth. */
  glob?: string
  ignoreCase: boolean
  context: number
  /** Stop counting content beyond this many matching lines; `total` still counts all. */
  limit: number
  /** From the start of execution. */
  timeoutMs: number
}

export type GrepLine = {
  path: string
  line: number
  text: string
  match: boolean /** First match in `text`, code units. */
  at?: [start: number, end: number]
}

export type GrepResult =
  | { kind: 'matches'; lines: GrepLine[]; shown: number; total: number; skippedBinary: number }
  | { kind: 'timeout'; lines: GrepLine[]; shown: number }
  | { kind: 'bad-pattern'; message: string }
  /** The search engine could not do it (out of memory, say). */
  | { kind: 'failed'; message: string }
  /** Nothing is at the query's `path`. */
  | { kind: 'missing' }
