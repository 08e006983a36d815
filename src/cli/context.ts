import { availableParallelism } from 'node:os'
import { FatalError, type RecordFault } from '../record/fault.js'
import type { Known } from '../record/item.js'
import { type Cache, noCache } from '../store/cache.js'
import { defaultCacheFile } from '../store/db.js'
import { openCache } from '../store/sqlite-cache.js'
import type { Context } from './command.js'
import type { Messages } from './messages.js'
import type { SharedValues } from './options.js'
import type { Invocation } from './parse.js'
import type { Upstream } from './upstream.js'

/** What a command gets beside its records, made from the command line. `readToEnd` says whether the input was read to its end. */
export function createContext(
  { command, shared, args, given }: Invocation,
  messages: Messages,
  signal: AbortSignal,
  upstream: Upstream,
  readToEnd: () => boolean,
): Context {
  const count = { in: 0, out: 0, cached: 0, faults: 0 }
  const maxFaults = shared['max-faults'] ?? Number.POSITIVE_INFINITY
  return {
    name: command.name,
    seed: shared.seed,
    jobs: shared.jobs ?? command.jobs ?? availableParallelism(),
    timeout: shared.timeout,
    cache: cacheOf(shared, messages),
    cacheFile: shared.cache ?? defaultCacheFile(),
    signal,
    say: messages.say,
    warn: messages.warn,
    detail: messages.detail,
    progress: messages.progress,
    count,
    fault: (error: RecordFault, of: Known) => {
      error.origin ??= of.origin
      if (!shared['keep-going']) throw error
      count.faults++
      const { file, line } = error.origin
      messages.say(`${file}:${line}: ${error.message}`)
      if (count.faults > maxFaults)
        throw new FatalError('E_MAX_FAULTS', `more than ${maxFaults} faults: look at the first ones, or raise --max-faults`)
      return {
        kind: 'fault',
        v: 1,
        stage: stageName(command.name),
        code: error.code,
        message: error.message,
        of: nameOf(of),
        retry: error.retry,
      }
    },
    // after a signal what was read is not all done
    cleanEnd: () => readToEnd() && !signal.aborted && upstream.early().length === 0,
    upstream: upstream.runs,
    args,
    given: name => given.has(name),
    terminal: process.stdout.isTTY === true && shared.output === undefined,
    color: mayColor(shared.color, process.stdout.isTTY === true && shared.output === undefined),
  }
}

/** `eval score` of `cg-eval score`. */
export function stageName(command: string): string {
  return command.replace(/^cg-/, '')
}

export function mayColor(when: SharedValues['color'], terminal: boolean): boolean {
  if (when !== 'auto') return when === 'always'
  return terminal && process.env.TERM !== 'dumb' && !process.env.NO_COLOR
}

function cacheOf(shared: SharedValues, messages: Messages): Cache {
  if (shared['no-cache']) return noCache
  return openCache({ file: shared.cache ?? defaultCacheFile(), refresh: shared.refresh, only: shared['cache-only'], warn: messages.warn })
}

/** The id of the record that failed, or the line it stood on. */
function nameOf({ record, origin }: Known): string {
  const { id, instance_id } = record as { id?: unknown; instance_id?: unknown }
  return typeof id === 'string' ? id : typeof instance_id === 'string' ? instance_id : `line ${origin.line}`
}
