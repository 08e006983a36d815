import { setMaxListeners } from 'node:events'
import { RecordFault } from './fault.js'
import type { Item, Known, Origin, Output } from './item.js'
import type { Fault, Kind, RecordOf } from './schema.js'

/** What ordered work needs from its command; a command's Context has it. */
export type StageContext = {
  signal: AbortSignal
  /** Seconds a record may take; undefined or 0: no limit. */
  timeout?: number | undefined
  /** The `fault` record that stands for a failed one; throws when the command must end instead. */
  fault(error: RecordFault, of: Known): Fault
}

type New = RecordOf[Kind]
export type StageResult = New | New[] | AsyncIterable<New>

/** One input item on its way: outputs so far, and whether more will come. */
type Slot = { outputs: Output[]; done: boolean; error?: unknown }

/** Read ahead of the oldest unfinished record, so that one slow record does not idle the other jobs. */
const lookAhead = (jobs: number) => 4 * jobs + 16

/**
 * Applies `work` to every record of `kind`, at most `jobs` at once, and yields the results in input order whatever `jobs` is.
 *
 * Everything else passes in place; a barrier comes out after all that stood before it. A result is yielded as soon as all before it are out: it never waits
 * for more input. A RecordFault becomes `context.fault(...)`; any other error ends the iteration after what preceded it. After an abort nothing new is
 * started, what is in flight finishes, and the output is a prefix of what it would have been. `work` gets a signal that the abort or the record's timeout
 * (E_TIMEOUT) trigger.
 */
export async function* mapRecords<K extends Kind>(
  input: AsyncIterable<Item>,
  kind: K,
  { jobs, context }: { jobs: number; context: StageContext },
  work: (record: RecordOf[K], origin: Origin, signal: AbortSignal) => StageResult | Promise<StageResult>,
): AsyncGenerator<Output> {
  const slots: Slot[] = []
  const changed = bell()
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // one a job
  const onAbort = () => {
    stop.abort(context.signal.reason)
    changed.ring()
  }
  if (context.signal.aborted) onAbort()
  else context.signal.addEventListener('abort', onAbort, { once: true })
  let running = 0
  let ended = false
  let failure: unknown

  const start = async (item: Known<K>, slot: Slot) => {
    running++
    try {
      await runOne(item, slot, work, context, stop.signal, changed.ring)
    } catch (error) {
      slot.error = error
    } finally {
      running--
      slot.done = true
      changed.ring()
    }
  }

  const pump = async () => {
    try {
      for await (const item of input) {
        if (item.kind !== kind) slots.push({ outputs: [item], done: true })
        else {
          const slot: Slot = { outputs: [], done: false }
          slots.push(slot)
          void start(item as Known<K>, slot)
        }
        changed.ring()
        while (!stop.signal.aborted && (running >= jobs || slots.length >= lookAhead(jobs))) await changed.wait()
        if (stop.signal.aborted) break
      }
    } catch (error) {
      failure = error
    } finally {
      ended = true
      changed.ring()
    }
  }

  void pump()
  try {
    for (;;) {
      const head = slots[0]
      if (head === undefined) {
        if (ended || stop.signal.aborted) break
        await changed.wait()
        continue
      }
      while (head.outputs.length > 0) yield head.outputs.shift()!
      if (!head.done) await changed.wait()
      else if (head.outputs.length === 0) {
        if (head.error !== undefined) {
          if (context.signal.aborted && !(head.error instanceof RecordFault)) return
          throw head.error
        }
        slots.shift()
        changed.ring()
      }
    }
    if (failure !== undefined) throw failure
  } finally {
    context.signal.removeEventListener('abort', onAbort)
    stop.abort()
    changed.ring()
  }
}

async function runOne<K extends Kind>(
  item: Known<K>,
  slot: Slot,
  work: (record: RecordOf[K], origin: Origin, signal: AbortSignal) => StageResult | Promise<StageResult>,
  context: StageContext,
  stop: AbortSignal,
  ring: () => void,
): Promise<void> {
  const own = new AbortController()
  const onStop = () => own.abort(stop.reason)
  if (stop.aborted) onStop()
  else stop.addEventListener('abort', onStop, { once: true })
  let late: NodeJS.Timeout | undefined
  let open = true

  const collect = async () => {
    const result = await work(item.record as RecordOf[K], item.origin, own.signal)
    if (Array.isArray(result)) {
      if (open) slot.outputs.push(...result)
    } else if (Symbol.asyncIterator in result) {
      for await (const record of result as AsyncIterable<New>) {
        if (!open) return
        slot.outputs.push(record)
        ring()
      }
    } else if (open) slot.outputs.push(result as New)
  }
  const overdue = new Promise<never>((_, reject) => {
    if (!context.timeout) return
    const fault = new RecordFault('E_TIMEOUT', `took longer than ${context.timeout} s: raise --timeout`, true)
    late = setTimeout(() => {
      reject(fault)
      own.abort(fault)
    }, context.timeout * 1000)
  })

  try {
    await Promise.race([collect(), overdue])
  } catch (error) {
    if (!(error instanceof RecordFault)) throw error
    error.origin ??= item.origin
    slot.outputs.push(context.fault(error, item as Known))
  } finally {
    open = false
    clearTimeout(late)
    stop.removeEventListener('abort', onStop)
  }
}

/** Wakes everyone who waits; a ring with nobody waiting is remembered by the state they look at. */
function bell() {
  let waiting: (() => void)[] = []
  return {
    wait: () => new Promise<void>(resolve => waiting.push(resolve)),
    ring: () => {
      const woken = waiting
      waiting = []
      for (const resolve of woken) resolve()
    },
  }
}
