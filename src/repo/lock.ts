import { existsSync, linkSync, mkdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RecordFault } from '../record/fault.js'
import { readHolder, stateOf, thisProcess } from './holder.js'

const turns = new Map<string, Promise<void>>()
let serial = 0

/** How long a lock of another host is waited for: whether its holder still runs cannot be seen from here. */
const patienceMs = 900_000

/**
 * Runs `work` while holding the lock file, alone among all processes and all callers in this one.
 *
 * The file names its holder; a lock whose holder has died is taken over. It appears complete or not at all (link(2) of a finished file, which fails like
 * O_EXCL if the name is taken), so that nobody judges a half-written one. Throws RecordFault E_LOCK for a lock of another host that does not go away.
 */
export async function withLock<T>(file: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  let done = () => {}
  const before = turns.get(file) ?? Promise.resolve()
  const mine = new Promise<void>(resolve => (done = resolve))
  turns.set(file, mine)
  await before
  try {
    await acquire(file, signal)
    try {
      return await work()
    } finally {
      unlinkSync(file)
    }
  } finally {
    done()
    if (turns.get(file) === mine) turns.delete(file)
  }
}

async function acquire(file: string, signal?: AbortSignal): Promise<void> {
  mkdirSync(dirname(file), { recursive: true })
  const start = performance.now()
  for (let wait = 2; !take(file); wait = Math.min(wait * 1.5, 50)) {
    signal?.throwIfAborted()
    const holder = readHolder(file)
    const state = holder && stateOf(holder)
    if (state === 'dead') breakLock(file)
    else if (state === 'elsewhere' && performance.now() - start > patienceMs)
      throw new RecordFault(
        'E_LOCK',
        `${file} is held by process ${holder?.pid} on ${holder?.host}: remove the file if that process is gone`,
        true,
      )
    await sleep(wait * (0.5 + Math.random()))
  }
}

function take(file: string): boolean {
  if (existsSync(file)) return false
  const complete = `${file}.${process.pid}.${serial++}`
  writeFileSync(complete, JSON.stringify(thisProcess()))
  try {
    linkSync(complete, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  } finally {
    unlinkSync(complete)
  }
}

/** Removes a dead holder's lock. Only who holds `FILE.break` may, or two waiters could each remove a lock, the second one a living one. */
function breakLock(file: string): void {
  const guard = `${file}.break`
  if (!take(guard)) {
    const breaker = readHolder(guard)
    if (breaker && stateOf(breaker) === 'dead') rmSync(guard, { force: true })
    return
  }
  try {
    const holder = readHolder(file)
    if (holder && stateOf(holder) === 'dead') rmSync(file, { force: true })
  } finally {
    rmSync(guard, { force: true })
  }
}
