import { readdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { discardTemporary } from '../record/temporary.js'
import { type Holder, lockState, readHolder, thisProcess } from './holder.js'
import { writeWhole } from './write-whole.js'

const held = new Map<string, number>()
/** Directories that were cleared of dead leases by this process. */
const swept = new Set<string>()
let watching = false

/**
 * Says that this process uses the worktree at `path`, until the returned function is called or the process exits: `prune` leaves it alone.
 *
 * A lease is a file beside the worktree that names the process; those of dead processes count for nothing, and the first lease of a process in a directory
 * removes them: a night of kills leaves no more than one run's. Leases of one process on one tree are counted.
 */
export function leaseTree(path: string): () => void {
  const count = held.get(path) ?? 0
  if (count === 0) {
    sweepDead(dirname(path))
    writeWhole(leaseFile(path), JSON.stringify(thisProcess()), { durable: false })
  }
  if (!watching) process.once('exit', releaseAll)
  watching = true
  held.set(path, count + 1)

  let released = false
  return () => {
    if (released) return
    released = true
    const left = (held.get(path) ?? 1) - 1
    if (left > 0) held.set(path, left)
    else release(path)
  }
}

/** Who uses the tree now. Leases of dead processes are removed on the way. */
export function leasesOf(path: string): Holder[] {
  const prefix = `${basename(path)}.lease.`
  const live: Holder[] = []
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(prefix) || !isLease(name)) continue
    const file = join(dirname(path), name)
    if (lockState(file) === 'dead') discardTemporary(file)
    else {
      const holder = readHolder(file)
      if (holder) live.push(holder)
    }
  }
  return live
}

/** Is this a lease whose process has ended? */
export function isDeadLease(directory: string, name: string): boolean {
  return isLease(name) && lockState(join(directory, name)) === 'dead'
}

/** Not so the temporary name under which one is being written: half of it cannot be read, and its process lives. */
function isLease(name: string): boolean {
  return /\.lease\.[^/]+\.\d+$/.test(name)
}

function sweepDead(directory: string): void {
  if (swept.has(directory)) return
  swept.add(directory)
  for (const name of readdirSync(directory)) {
    if (isDeadLease(directory, name)) discardTemporary(join(directory, name))
  }
}

function leaseFile(path: string): string {
  return `${path}.lease.${hostname()}.${process.pid}`
}

function release(path: string): void {
  held.delete(path)
  discardTemporary(leaseFile(path))
}

function releaseAll(): void {
  for (const path of held.keys()) discardTemporary(leaseFile(path))
  held.clear()
}
