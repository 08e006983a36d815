import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process as /proc shows it; `start` (clock ticks after boot) tells it from a later one with the same number. */
export type Seen = { pid: number; parent: number; state: string; start: string; words: string; cwd: string }

/** Every process there is; empty where there is no /proc. */
export function processes(): Seen[] {
  let names: string[]
  try {
    names = readdirSync('/proc')
  } catch {
    return []
  }
  return names.filter(name => /^\d+$/.test(name)).flatMap(name => look(Number(name)) ?? [])
}

/** What a process has started, and what that has started, and so on. */
export function tree(pid: number, all = processes()): Seen[] {
  return all.filter(({ parent }) => parent === pid).flatMap(child => [child, ...tree(child.pid, all)])
}

/** Those that still run: a zombie has ended. */
export function alive(seen: readonly Seen[]): Seen[] {
  return seen.filter(({ pid, start }) => {
    const now = look(pid)
    return now !== undefined && now.start === start && now.state !== 'Z'
  })
}

/** Ends what a test leaves behind on purpose. */
export function slay(seen: readonly Seen[]): void {
  for (const { pid } of alive(seen))
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has ended meanwhile
    }
}

/** Those that have ended and were not waited for by a parent that is not init. */
export function zombies(seen: readonly Seen[]): Seen[] {
  return seen.filter(({ pid, start }) => {
    const now = look(pid)
    return now !== undefined && now.start === start && now.state === 'Z' && now.parent !== 1
  })
}

/** Processes that work in a directory or were told of it: what is left of a test, whoever adopted it. */
export function at(dir: string): Seen[] {
  return processes().filter(
    ({ pid, words, cwd, state }) => pid !== process.pid && state !== 'Z' && (words.includes(dir) || cwd.startsWith(dir)),
  )
}

/** Waits for something that will be, long enough for any machine; false if it never was. */
export async function until(condition: () => boolean, seconds = 60): Promise<boolean> {
  for (let n = 0; n < seconds * 50; n++) {
    if (condition()) return true
    await sleep(20)
  }
  return condition()
}

function look(pid: number): Seen | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return { pid, state: fields[0]!, parent: Number(fields[1]), start: fields[19]!, words, cwd: whereIs(pid) }
  } catch {
    return undefined
  }
}

function whereIs(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ''
  }
}
