import { renameSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { TrainerFile, TrainerState } from '../record/run-directory.js'
import { writing } from '../record/write-failure.js'

const everyMs = 5000

export type Heartbeat = {
  state(state: TrainerState): void
  /** One more barrier was read. */
  saw(): void
  stop(state: 'done' | 'failed'): void
}

/**
 * Rewrites DIR/trainer.json every 5 s and at every change, so that the rollout stage knows that somebody trains, and what it waits for.
 *
 * Throws FatalError E_WRITE when it cannot be written at the start; later ones are passed over.
 */
export function startHeartbeat(dir: string): Heartbeat {
  const file = join(dir, 'trainer.json')
  const now: TrainerFile = { pid: process.pid, host: hostname(), start: new Date().toISOString(), state: 'starting', seen: 0, beat: 0 }
  const beat = () => {
    now.beat++
    const fresh = `${file}.new`
    writeFileSync(fresh, `${JSON.stringify(now)}\n`)
    renameSync(fresh, file)
  }
  writing(file, beat)
  // A disk that is full for a while must not end a training run by its heartbeat: the next commit says so.
  const tryBeat = () => {
    try {
      beat()
    } catch {}
  }
  const timer = setInterval(tryBeat, everyMs)
  timer.unref()
  return {
    state(state) {
      now.state = state
      tryBeat()
    },
    saw() {
      now.seen++
      tryBeat()
    },
    stop(state) {
      clearInterval(timer)
      now.state = state
      tryBeat()
    },
  }
}
