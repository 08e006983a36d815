import { constants } from 'node:os'

const caught = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type Caught = (typeof caught)[number]

/**
 * Calls `stop` at the first INT, TERM or HUP; the second ends the process at once, as the signal would have.
 *
 * `raise` ends the process by the signal that came, so that shells and Make see it; call it last.
 */
export function watchSignals(stop: (signal: Caught) => void): { received(): Caught | undefined; raise(): void; dispose(): void } {
  let received: Caught | undefined
  const handle = (signal: NodeJS.Signals) => {
    if (received) return end(signal)
    received = signal as Caught
    stop(received)
    // From the next turn on nobody listens, and the system ends us at the second one even while we wait for something, such as a locked cache.
    setImmediate(dispose)
  }
  const dispose = () => {
    for (const signal of caught) process.removeListener(signal, handle)
  }
  const end = (signal: NodeJS.Signals) => {
    dispose()
    // A library that listens too (for the children it started) gets the signal first and may need a turn; the status is right even if that turn never comes.
    process.exitCode = 128 + constants.signals[signal]
    process.kill(process.pid, signal)
  }
  for (const signal of caught) process.on(signal, handle)
  return {
    received: () => received,
    raise: () => {
      if (received) end(received)
    },
    dispose,
  }
}
