import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const library = resolve('build/Release/failing-disk.node')

/** For tests that need a disk that fails: why it cannot be had here, or false. */
export const noFailingDisk =
  process.platform !== 'linux' ? 'needs LD_PRELOAD' : existsSync(library) ? false : 'build/Release/failing-disk.node is not built'

export type DiskError = 'ENOSPC' | 'EDQUOT' | 'EIO' | 'EROFS'

/** How a disk fails; what the words mean stands in native/test/failing_disk.cpp. */
export type FailingDisk = {
  under: string
  from?: number
  count?: number
  error?: DiskError
  tally?: string
  shift?: number
  after?: number
}

/** The environment that makes a process meet a disk that fails. git and other children with an environment of their own do not meet it. */
export function failingDisk({ under, from = 0, count, error = 'ENOSPC', tally, shift, after }: FailingDisk): NodeJS.ProcessEnv {
  return {
    LD_PRELOAD: library,
    CG_DISK: under,
    CG_DISK_FROM: String(from),
    CG_DISK_ERROR: error,
    ...(count === undefined ? {} : { CG_DISK_COUNT: String(count) }),
    ...(tally === undefined ? {} : { CG_DISK_TALLY: tally }),
    ...(shift === undefined ? {} : { CG_CLOCK_SHIFT: String(shift) }),
    ...(after === undefined ? {} : { CG_CLOCK_AFTER: String(after) }),
  }
}

/** A change that a process made: the n-th, by this call, to this file. */
export type Change = { n: number; call: string; path: string }

/** What a tally holds, of the first process that wrote into it; of equal changes in a row the first. */
export function changes(tally: string): Change[] {
  const all: Change[] = []
  for (const line of readFileSync(tally, 'utf8').split('\n')) {
    const [, n, call, path] = /^(\d+) (\S+) (.*)$/.exec(line) ?? []
    if (n === undefined) continue
    if (Number(n) <= (all.at(-1)?.n ?? 0)) break
    all.push({ n: Number(n), call: call!, path: path! })
  }
  return all.filter(({ call, path }, i) => i === 0 || call !== all[i - 1]!.call || path !== all[i - 1]!.path)
}

/** Chooses the first change that looks like each of the patterns, which are matched with `call path`. */
export function matching(...patterns: RegExp[]) {
  return (all: Change[]): Change[] => patterns.map(pattern => like(pattern, all))
}

/** The same with the last one. */
export function lastMatching(...patterns: RegExp[]) {
  return (all: Change[]): Change[] => patterns.map(pattern => like(pattern, [...all].reverse()))
}

function like(pattern: RegExp, all: Change[]): Change {
  const found = all.find(({ call, path }) => pattern.test(`${call} ${path}`))
  if (!found) throw new Error(`no change like ${pattern}`)
  return found
}
