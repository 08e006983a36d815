import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { FatalError } from '../record/fault.js'
import { discardTemporary } from '../record/temporary.js'
import { lockState, readHolder, thisProcess } from '../repo/holder.js'
import { takeLock } from '../repo/take-lock.js'

/**
 * Takes the lock of a run directory: one writer at a time. Gives the function that releases it.
 *
 * `DIR/lock` names its holder's host, process and start. A holder that has died is replaced; one that lives, or whose host cannot be seen from here, refuses
 * with FatalError E_LOCK; one that cannot be written is E_WRITE. The file appears complete or not at all: link(2) of a finished file fails when the name is taken.
 */
export function lockRunDirectory(dir: string): () => void {
  const file = join(dir, 'lock')
  if (!take(file)) {
    breakDead(dir, file)
    if (!take(file)) throw held(dir, file)
  }
  return () => discardTemporary(file) // where it cannot go, the next one replaces the lock of a dead process
}

function take(file: string): boolean {
  return takeLock(file, `${JSON.stringify({ ...thisProcess(), since: new Date().toISOString() })}\n`)
}

/** Removes a dead holder's lock. Only who holds the guard may, or of two comers the second could remove the lock that the first has just taken. */
function breakDead(dir: string, file: string): void {
  const guard = `${file}.break`
  if (!take(guard)) {
    if (lockState(guard) === 'dead') discardTemporary(guard)
    throw held(dir, file)
  }
  try {
    if (['alive', 'elsewhere'].includes(lockState(file))) throw held(dir, file)
    rmSync(file, { force: true })
  } finally {
    discardTemporary(guard)
  }
}

function held(dir: string, file: string): FatalError {
  const holder = readHolder(file)
  const who = holder ? `process ${holder.pid} on ${holder.host}` : 'another process'
  const elsewhere = lockState(file) === 'elsewhere'
  const advice = elsewhere ? `remove ${file} if that process is gone` : 'wait for it, end it, or name another directory'
  return new FatalError('E_LOCK', `${dir} is being trained by ${who}: ${advice}`)
}
