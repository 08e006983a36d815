import { readdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'

let serial = 0

/** A name beside `file` for what is to become it, taken by nobody else: `FILE.HOST.PID.N.tmp`. */
export function temporaryName(file: string): string {
  return `${file}.${hostname()}.${process.pid}.${serial++}.tmp`
}

/**
 * Removes the temporary files of `file` that processes of this host left when they were killed, so that they do not gather over many nights. Those of other
 * hosts stay: who runs there cannot be seen from here. What cannot be looked at or removed stays too: it is in nobody's way.
 */
export function sweepTemporaries(file: string): void {
  try {
    const directory = dirname(file)
    for (const name of readdirSync(directory))
      if (name.startsWith(`${basename(file)}.`) && leftBehind(name)) discardTemporary(join(directory, name))
  } catch {}
}

/** Removes a temporary file if that is possible: why it is not (a disk that became read-only) must not hide what failed before. */
export function discardTemporary(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {}
}

/** Is this the name of a temporary file of a process of this host that has ended? */
export function leftBehind(name: string): boolean {
  const pid = /\.(\d+)\.\d+\.tmp$/.exec(name)
  return pid !== null && name.slice(0, pid.index).endsWith(`.${hostname()}`) && hasEnded(Number(pid[1]))
}

/** True when no process of this host has the id. */
export function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
