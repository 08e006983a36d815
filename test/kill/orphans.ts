import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a child may take to see that its parent has died, in ms: standard output is looked at once a second. */
const graceMs = 5000

/** Processes that still run with `text` in their command line, when they have had time to end. Empty where there is no /proc. */
export async function orphansOf(text: string): Promise<string[]> {
  const began = performance.now()
  for (;;) {
    const found = processes().filter(({ command }) => command.includes(text))
    if (found.length === 0 || performance.now() - began > graceMs) return found.map(({ pid, command }) => `${pid} ${command.slice(0, 120)}`)
    await sleep(200)
  }
}

function processes(): { pid: number; command: string }[] {
  try {
    return readdirSync('/proc').flatMap(name => {
      const pid = Number(name)
      if (!Number.isInteger(pid) || pid === process.pid) return []
      try {
        return [{ pid, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }]
      } catch {
        return [] // it has just ended
      }
    })
  } catch {
    return []
  }
}
