import { setMaxListeners } from 'node:events'
import { contentId } from '../record/canonical.js'
import { type Item, isItem, type Known, type Output } from '../record/item.js'
import { readRecords } from '../record/read.js'
import type { End, Run } from '../record/schema.js'
import { lineWriter } from '../record/write.js'
import type { AnyCommand, Context } from './command.js'
import { createContext, stageName } from './context.js'
import { inputDigest } from './digest.js'
import { exits } from './exits.js'
import type { Messages } from './messages.js'
import { decides, flagName, type OptionTable } from './options.js'
import { openSink, ReaderGone } from './output.js'
import type { Invocation } from './parse.js'
import { watchReader } from './reader-gone.js'
import { watchSignals } from './signals.js'
import { followUpstream } from './upstream.js'
import { version } from './version.js'

/** Records that speak about the stream; they are not what a stage works on. */
const aboutStream = new Set(['run', 'end', 'barrier', 'fault'])

/**
 * Runs a command on its input: reads, works, writes, and says how it went.
 *
 * The output begins with the stage's `run` and closes with its `end`, between which upstream's own pass by (stream contract, "Beginning and end"). Whatever
 * ends the work early, what was done before is written, the cache is committed, and `end` says `ok: false`. Returns the exit status; `raise` ends the process by
 * the signal that stopped it.
 */
export async function work(
  invocation: Invocation,
  files: readonly string[],
  standalone: boolean,
  messages: Messages,
): Promise<{ status: number; raise(): void }> {
  const { command, shared } = invocation
  const began = process.hrtime.bigint()
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // everything that is in flight listens
  const reading = new AbortController() // ends with the work, although somebody may still wait for input
  stop.signal.addEventListener('abort', () => reading.abort())
  const upstream = followUpstream()
  const digest = inputDigest()
  let readToEnd = standalone
  let rows = 0
  const context = createContext(invocation, messages, stop.signal, upstream, () => readToEnd)
  const signals = watchSignals(signal => {
    messages.say(`${signal}: finishing what is in flight; once more ends at once`)
    stop.abort(new Error(signal))
  })

  async function* input(): AsyncGenerator<Item> {
    if (standalone) return
    const kinds = new Set([...command.reads, 'barrier' as const])
    for (const file of files)
      yield* readRecords(file, kinds, {
        maxLine: shared['max-line'] * 2 ** 20,
        signal: reading.signal,
        seen(kind, value, bytes) {
          digest.add(value, bytes)
          upstream.observe(kind, value)
          if (!aboutStream.has(kind ?? '')) rows++
          if (kind !== undefined && (command.reads as readonly string[]).includes(kind)) context.count.in++
        },
        fault: fault => {
          rows++
          const record = context.fault(fault, { kind: 'fault', record: {}, origin: fault.origin } as Known)
          return { kind: 'fault', record, origin: fault.origin! }
        },
        cut: () => upstream.open(),
      })
    readToEnd = !reading.signal.aborted
    if (readToEnd) for (const name of upstream.early()) messages.warn(`upstream ${name} ended early`)
  }

  const sink = openSink(shared.output)
  const unwatch = shared.output === undefined ? watchReader(() => stop.abort(new ReaderGone())) : () => {}
  const write = lineWriter()
  const forPeople =
    typeof command.people === 'function'
      ? command.people(invocation.options as never, context.terminal)
      : command.people && context.terminal
  const speaks = !shared['no-run'] && command.standalone !== true && !forPeople
  const run = runRecord(command, invocation, context)
  let failure: unknown
  const attempt = async (what: () => unknown) => {
    try {
      await what()
    } catch (error) {
      failure ??= error
    }
  }

  await attempt(async () => {
    if (speaks) await sink.write(write(run))
    for await (const output of command.run(input(), invocation.options as never, context)) {
      const record = recordOf(output)
      if (record.kind === 'barrier') context.cache.flush()
      if (output.kind === 'foreign') await sink.write(Buffer.concat([output.bytes as Uint8Array, lineFeed]))
      else await sink.write(write(record))
      if (!aboutStream.has(record.kind ?? '') && output.kind !== 'foreign') context.count.out++
    }
  })
  await attempt(() => context.cache.flush()) // before `end` says ok: work that the cache could not keep is a failure
  reading.abort()
  const gone = () => failure instanceof ReaderGone || stop.signal.reason instanceof ReaderGone
  if (speaks && !gone()) {
    const { in: read, out, faults } = context.count
    const ok = failure === undefined && context.cleanEnd()
    const end: End = { kind: 'end', v: 1, run: run.id, stage: run.stage, in: read, out, faults, ok, digest: digest.hex() }
    await attempt(() => sink.write(write(end)))
  }
  await attempt(() => context.cache.close())
  await attempt(() => sink.drain())
  let kept: string | undefined
  await attempt(() => {
    kept = sink.finish(failure === undefined && !stop.signal.aborted)
  })
  unwatch()
  messages.clear()
  if (gone()) return { status: exits.ok, raise: signals.raise }

  if (failure !== undefined && !signals.received()) messages.error(failure)
  if (kept) messages.warn(`what was done is in ${kept}`)
  const status = statusOf(failure, context, rows)
  if (status === exits.nothing) messages.warn(nothingDone(command, context, rows))
  if (command.standalone !== true) messages.say(summary(context, began))
  return { status, raise: signals.raise }
}

const lineFeed = Buffer.from('\n')

function recordOf(output: Output): Exclude<Output, Known> {
  return isItem(output) && output.kind !== 'foreign' ? (output.record as Exclude<Output, Known>) : (output as Exclude<Output, Known>)
}

/** Provenance without clock, host or path: the same command on other data has the same id, on another machine too. */
function runRecord(command: AnyCommand, { options }: Invocation, { seed }: Context): Run {
  const deciding: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(command.options as OptionTable))
    if (decides(option) && options[name] !== undefined) deciding[flagName(name)] = options[name]
  const stage = stageName(command.name)
  const id = contentId('run', [], { stage, version, options: deciding, seed })
  return { kind: 'run', v: 1, id, stage, command: command.name, version, options: deciding, seed }
}

function statusOf(failure: unknown, { count }: Context, rows: number): number {
  if (failure !== undefined) return failure instanceof Error && failure.name === 'UsageError' ? exits.usage : exits.fatal
  if (rows > 0 && count.out === 0 && count.cached === 0) return exits.nothing
  return count.faults > 0 ? exits.faults : exits.ok
}

function nothingDone(command: AnyCommand, { count }: Context, rows: number): string {
  if (count.in > 0) return `none of ${count.in} records could be done`
  return `${rows} lines of input, and no ${command.reads.join(' or ')} record among them: is this the right file?`
}

function summary({ count }: Context, began: bigint): string {
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  return `${count.in} in, ${count.out} out, ${count.cached} cached, ${count.faults} faults, ${seconds.toFixed(1)} s`
}
