import type { Test } from 'tap'
import type { Look, Watched } from './watch-pipe.js'

/** What a stage may grow by, of what is no leak. */
export type Allowed = {
  /** Its late resident size as a share of the early one. V8 frees what it likes: the same work differs by a tenth. */
  share: number
  /**
   * It has a cache, which is opened with the first record (the database, its log, the log's index) and fills: 16,000 KiB of pages (better-sqlite3 is built with
   * SQLITE_DEFAULT_CACHE_SIZE=-16000).
   */
  cache?: boolean
}
const pageCache = 16_000
const cacheFiles = 3

/** A part of a stage's looks, from one share of its life to another. */
function part(looks: readonly Look[], from: number, to: number): Look[] {
  return looks.slice(Math.floor(from * looks.length), Math.max(Math.floor(to * looks.length), 1))
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

/** What grew in a stage. Early is from a fifth to two fifths of its life, when everything is loaded; late is its last fifth, but for the end itself. */
export function growth(looks: readonly Look[]) {
  const early = part(looks, 0.2, 0.4)
  const late = part(looks, 0.8, 1).slice(0, -1)
  const least = (looks: readonly Look[]) => Math.min(...looks.map(look => look.descriptors))
  const size = { early: median(early.map(look => look.rss)), late: median(late.map(look => look.rss)) }
  return { size, descriptors: { early: least(early), late: least(late) } }
}

/**
 * Tests that a pipe ended well and stayed as it was: the median resident size of the late looks is not above that of the early ones by more than is allowed, the
 * descriptors that last are no more (an input that has been read is closed), no child was left unwaited for.
 */
export function testFlat(t: Test, watched: Watched, stages: readonly string[], { share, cache = false }: Allowed): void {
  t.equal(watched.status, 0, watched.stderr.slice(-2000))
  t.same([...watched.stages.keys()].sort(), [...stages].sort(), 'every stage was looked at')
  t.equal(watched.zombies, 0, 'children are waited for')
  for (const [name, looks] of watched.stages) {
    const { size, descriptors } = growth(looks)
    t.ok(size.late < share * size.early + (cache ? pageCache : 0), `${name}: ${mib(size.early)} MiB early, ${mib(size.late)} MiB late`)
    t.ok(
      descriptors.late <= descriptors.early + (cache ? cacheFiles : 0),
      `${name}: ${descriptors.early} descriptors early, ${descriptors.late} late`,
    )
  }
}

/** Prints a table of what the stages took, on standard error: the runner shows nothing else of a test that passes. */
export function printFigures(title: string, { stages, seconds }: Watched): void {
  const lines = [...stages].map(([name, looks]) => {
    const { size, descriptors } = growth(looks)
    const last = looks.at(-1)!
    const most = (what: 'open' | 'children') => Math.max(...looks.map(look => look[what]))
    return [
      `  ${name}:`,
      `resident ${mib(size.early)} MiB early, ${mib(size.late)} late, ${mib(last.peak)} at most;`,
      `descriptors ${descriptors.early} early, ${descriptors.late} late, ${most('open')} at most;`,
      `processor ${last.cpu.toFixed(1)} s, children ${last.childCpu.toFixed(1)} s; at most ${most('children')} children;`,
      `${looks.length} looks`,
    ].join(' ')
  })
  process.stderr.write(`${title}: ${seconds.toFixed(1)} s\n${lines.join('\n')}\n`)
}

function mib(kib: number): string {
  return (kib / 1024).toFixed(1)
}
