import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * How to start a program of the system so that neither it nor anything it starts outlives this process, even one that is killed: `command` and then its
 * arguments, with `env` added to its environment.
 */
export type Leashed = { command: [file: string, ...first: string[]]; env: Record<string, string> }

const leash = fileURLToPath(new URL('../../build/Release/cg-leash', import.meta.url))
let found: boolean | undefined

/**
 * Puts `program` on a leash (native/leash): it ends with this process, in a session of its own, so that an interrupt from the terminal reaches this process
 * alone. `addressSpaceKib` limits its memory.
 *
 * Where the leash is not built, on other systems than Linux or without the addon, the program is started as it is: it is ended at a signal, and if this
 * process is killed it ends by itself when it is done or meets a closed pipe. To be started from the main thread only: the kernel ties the leash to the thread.
 */
export function leashed(program: string, { addressSpaceKib }: { addressSpaceKib?: number } = {}): Leashed {
  found ??= existsSync(leash)
  if (found) {
    const limit = addressSpaceKib === undefined ? '' : `:${addressSpaceKib}`
    return { command: [leash, program], env: { CG_LEASH: `${process.pid}${limit}` } }
  }
  if (addressSpaceKib === undefined) return { command: [program], env: {} }
  return { command: ['/bin/sh', '-c', `ulimit -v ${addressSpaceKib} 2>/dev/null; exec "$0" "$@"`, program], env: {} }
}

/** Ends a started program at once, and all that it has started. Without a leash it must lead a process group (`detached`). */
export function endAtOnce(pid: number): void {
  try {
    if (found) process.kill(pid, 'SIGUSR1')
    else process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
