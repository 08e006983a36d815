import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/** A process, named so that a reused process id is not taken for it: start time in clock ticks after boot (proc(5), field 22). */
export type Holder = { host: string; boot: string; pid: number; start: string }

/** This process, as lock and lease files name it. */
export function thisProcess(): Holder {
  return { host: hostname(), boot: bootId(), pid: process.pid, start: startTime(process.pid) ?? '' }
}

/**
 * Does the process that wrote a lock or lease still run? `elsewhere`: it ran on another host, where we cannot look.
 *
 * Where there is no /proc, a process id alone decides.
 */
export function stateOf(holder: Holder): 'alive' | 'dead' | 'elsewhere' {
  if (holder.host !== hostname()) return 'elsewhere'
  if (holder.boot !== bootId()) return 'dead'
  const start = startTime(holder.pid)
  if (start !== undefined) return start === holder.start ? 'alive' : 'dead'
  if (bootId() !== '') return 'dead'
  try {
    process.kill(holder.pid, 0)
    return 'alive'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'alive' : 'dead'
  }
}

/**
 * The state of the process that a lock or lease file names, `gone` when there is no such file. The files appear complete or not at all, so one that cannot be
 * read was cut by a power failure, which its process did not survive.
 */
export function lockState(file: string): 'alive' | 'dead' | 'elsewhere' | 'gone' {
  const holder = readHolder(file)
  if (holder) return stateOf(holder)
  return existsSync(file) ? 'dead' : 'gone'
}

/** The holder that a lock or lease file names; undefined when the file is gone, or is none of ours. */
export function readHolder(file: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(file, 'utf8')) as Holder
    return typeof holder.pid === 'number' && typeof holder.host === 'string' ? holder : undefined
  } catch {
    return undefined
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return ''
  }
}

/** Undefined: no such process, or no /proc. A zombie has ended: it holds nothing. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the program's name in parentheses and may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
