import { UsageError } from '../record/fault.js'
import type { AnyCommand } from './command.js'
import { createContext, mayColor } from './context.js'
import { exits } from './exits.js'
import { help, shortUsage } from './help.js'
import { expandInputs } from './inputs.js'
import { createMessages, type Messages } from './messages.js'
import { openSink, ReaderGone } from './output.js'
import { type Invocation, parse } from './parse.js'
import { planLines } from './plan.js'
import { commandSchema } from './schema.js'
import { followUpstream } from './upstream.js'
import { version } from './version.js'
import { work } from './work.js'

/** How long a handle that somebody forgot may keep a process whose work is done. */
const lingerMs = 5000

/**
 * The life of a command: parse the command line, do the work, set the exit status. Everything that the commands share is here or called from here.
 *
 * The status is set, not forced: what was written is still to reach its reader.
 */
export async function main(module: Promise<{ default: AnyCommand }>): Promise<void> {
  let messages = createMessages({ name: 'cg', quiet: false, verbose: 0, progress: 'never', color: false })
  process.on('uncaughtException', error => {
    messages.error(error)
    process.exit(exits.fatal)
  })
  try {
    const { default: command } = await module
    messages = createMessages({ name: command.name, quiet: false, verbose: 0, progress: 'never', color: false })
    const { status, raise } = await execute(command, process.argv.slice(2), made => {
      messages = made
    })
    process.exitCode = status
    raise?.()
  } catch (error) {
    messages.error(error)
    process.exitCode = error instanceof UsageError ? exits.usage : exits.fatal
  }
  setTimeout(() => process.exit(), lingerMs).unref()
}

type Outcome = { status: number; raise?(): void }

async function execute(root: AnyCommand, argv: readonly string[], speak: (messages: Messages) => void): Promise<Outcome> {
  const asked = argv.indexOf('--get-yargs-completions')
  if (asked !== -1 || argv[0] === 'completion') {
    const { completions, completionScript } = await import('./completion.js')
    return print(asked === -1 ? await completionScript(root) : `${(await completions(root, argv.slice(asked + 1))).join('\n')}\n`)
  }

  const invocation = parsed(root, argv)
  if (invocation === undefined) return { status: exits.usage }
  const { command, shared } = invocation
  if (shared.help) return print(help(command))
  if (shared.version) return print(`${root.name} ${version}\n`)
  if (shared.schema) return print(`${JSON.stringify(commandSchema(command), null, 2)}\n`)

  const messages = createMessages({
    name: command.name,
    quiet: shared.quiet,
    verbose: shared.verbose,
    progress: shared.progress,
    color: mayColor(shared.color, process.stderr.isTTY === true),
  })
  speak(messages)
  const standalone =
    typeof command.standalone === 'function'
      ? command.standalone(invocation.options as never, invocation.args)
      : command.standalone === true
  if (!standalone && invocation.files.length === 0 && process.stdin.isTTY && !shared['dry-run']) {
    process.stderr.write(shortUsage(command))
    return { status: exits.usage }
  }
  const files = standalone ? [] : await expandInputs(invocation.files)
  if (shared['dry-run']) return plan(invocation, files, standalone, messages)
  return work(invocation, files, standalone, messages)
}

/** Undefined: the command line is wrong, and that has been said. */
function parsed(root: AnyCommand, argv: readonly string[]): Invocation | undefined {
  try {
    return parse(root, argv)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${root.name}: ${error.message}\n${root.unavailable ? '' : `Try '${root.name} --help'.\n`}`)
    return undefined
  }
}

async function plan(invocation: Invocation, files: readonly string[], standalone: boolean, messages: Messages): Promise<Outcome> {
  const context = createContext(invocation, messages, new AbortController().signal, followUpstream(), () => false)
  for (const line of await planLines(invocation.command, invocation, files, standalone, context)) messages.warn(line)
  context.cache.close()
  return { status: exits.ok }
}

async function print(text: string): Promise<Outcome> {
  const sink = openSink(undefined)
  try {
    await sink.write(text)
    await sink.drain()
  } catch (error) {
    if (!(error instanceof ReaderGone)) throw error
  }
  return { status: exits.ok }
}
