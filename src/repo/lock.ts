import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RecordFault } from '../record/fault.js'
import { makeDirectory } from '../record/make-directory.js'
import { discardTemporary } from '../record/temporary.js'
import { lockState, readHolder, thisProcess } from './holder.js'
import { takeLock } from './take-lock.js'

const turns = new Map<string, Promise<void>>()

/** How long a lock of another host is waited for: whether its holder still runs cannot be seen from here. */
const patienceMs = 900_000

/**
 * Runs `work` while holding the lock file, alone among all processes and all callers in this one.
 *
 * The file names its holder; a lock whose holder has died is taken over. It appears complete or not at all (link(2) of a finished file, which fails like
 * O_EXCL if the name is taken), so that nobody judges a half-written one; one that cannot be read is of before a power failure, its holder dead. Throws
 * RecordFault E_LOCK for a lock of another host that does not go away, FatalError E_WRITE when none can be written.
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
      discardTemporary(file)
    }
  } finally {
    done()
    if (turns.get(file) === mine) turns.delete(file)
  }
}

async function acquire(file: string, signal?: AbortSignal): Promise<void> {
  makeDirectory(dirname(file))
  const start = performance.now()
  for (let wait = 2; !take(file); wait = Math.min(wait * 1.5, 50)) {
    signal?.throwIfAborted()
    const state = lockState(file)
    if (state === 'dead') breakLock(file)
    else if (state === 'elsewhere' && performance.now() - start > patienceMs) {
      const holder = readHolder(file)
      throw new RecordFault(
        'E_LOCK',
        `${file} is held by process ${holder?.pid} on ${holder?.host}: remove the file if that process is gone`,
        true,
      )
    }
    await sleep(wait * (0.5 + Math.random()))
  }
}

function take(file: string): boolean {
  return !existsSync(file) && takeLock(file, JSON.stringify(thisProcess()))
}

/** Removes a dead holder's lock. Only who holds `FILE.break` may, or two waiters could each remove a lock, the second one a living one. */
function breakLock(file: string): void {
  const guard = `${file}.break`
  if (!take(guard)) {
    if (lockState(guard) === 'dead') discardTemporary(guard)
    return
  }
  try {
    if (lockState(file) === 'dead') discardTemporary(file)
  } finally {
    discardTemporary(guard)
  }
}
