import { hostname } from 'node:os'
import { join } from 'node:path'
import { FatalError } from '../record/fault.js'
import { type TrainerFile, trainerFile } from '../record/run-directory.js'
import { type Clock, readJson } from './run-reader.js'

/** How long a trainer may be silent once it was heard of, and how long a barrier may go unseen while the trainer waits, in ms. */
export type Patience = { silentMs: number; unseenMs: number }
export const usualPatience: Patience = { silentMs: 60_000, unseenMs: 30_000 }

export type TrainerWatch = {
  /** Looks at the heartbeat; throws FatalError E_TRAINER when there is nothing to wait for any more, E_NO_RUN when nobody came. */
  look(): Promise<void>
  /** Has the trainer of this life opened its run? Only then run.json says what it was told. */
  opened(): boolean
  /** A barrier of this step was written. */
  wrote(step: number): void
}

/**
 * Watches DIR/trainer.json without comparing clocks: what counts is this process's own time since it began or last saw the file change.
 *
 * A trainer that failed, is done, or is silent for a minute ends the wait, and so does one that has not shown itself after `absentMs`; its dead pid counts
 * only if it was seen alive, on this host. What the file said at the first look may be of an earlier life and ends nothing. A barrier that is not read although
 * the trainer waits is warned of once: something in the pipe buffers.
 */
export function watchTrainer(
  dir: string,
  { clock, patience = usualPatience, absentMs, warn }: { clock: Clock; patience?: Patience; absentMs: number; warn(message: string): void },
): TrainerWatch {
  let first: string | undefined
  let heard = false
  let opened = false
  let last: string | undefined
  let changed = clock.now()
  let alive: number | undefined
  let written = -1
  let unseenSince: number | undefined
  let warned = false

  function unseen({ state, seen }: TrainerFile) {
    if (state !== 'waiting' || written < 0 || seen > written) unseenSince = undefined
    else unseenSince ??= clock.now()
    if (unseenSince === undefined || warned || clock.now() - unseenSince < patience.unseenMs) return
    warned = true
    warn(`the trainer waits, and has not seen step ${written}: something in the pipe buffers (jq --unbuffered, grep --line-buffered)`)
  }

  return {
    opened: () => opened,
    wrote(step) {
      written = step
      unseenSince = undefined
    },
    async look() {
      const trainer = await readJson(join(dir, 'trainer.json'), trainerFile)
      const content = JSON.stringify(trainer)
      first ??= content ?? 'none'
      if (content !== last) {
        last = content
        changed = clock.now()
      }
      if (trainer && content !== first) {
        heard = true
        opened = trainer.state !== 'starting'
        if (trainer.state === 'failed') throw new FatalError('E_TRAINER', `${dir}: the trainer failed: see its messages`)
        if (trainer.state === 'done')
          throw new FatalError('E_TRAINER', `${dir}: the trainer is done, and a version that is waited for will not come`)
        if (trainer.host === hostname()) {
          if (isAlive(trainer.pid)) alive = trainer.pid
          else if (alive === trainer.pid)
            throw new FatalError('E_TRAINER', `${dir}: the trainer (pid ${trainer.pid}) is gone: run the same command again to go on`)
        }
        unseen(trainer)
      }
      const silent = clock.now() - changed
      if (!heard && silent >= absentMs)
        throw new FatalError(
          'E_NO_RUN',
          `${dir}: no trainer has come for ${Math.round(silent / 1000)} s: start cg-train grpo --publish ${dir}, or raise --wait`,
        )
      if (heard && silent >= patience.silentMs)
        throw new FatalError(
          'E_TRAINER',
          `${dir}: nothing was heard of the trainer for ${Math.round(silent / 1000)} s: run the same command again to go on`,
        )
    },
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
