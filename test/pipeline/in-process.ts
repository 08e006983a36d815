import type { AnyCommand } from '#cg/cli/command.js'
import { createContext } from '#cg/cli/context.js'
import type { Messages } from '#cg/cli/messages.js'
import { parse } from '#cg/cli/parse.js'
import { followUpstream } from '#cg/cli/upstream.js'
import { RecordFault } from '#cg/record/fault.js'
import { type Item, isItem, type Output } from '#cg/record/item.js'
import { parseLine } from '#cg/record/parse.js'

export type Outcome = { lines: string[]; records: Record<string, unknown>[]; said: string; error: Error | undefined; cached: number }

/**
 * Runs a command's own code on lines of input, without the process around it: for tests of what it does with records. `said` is what went to standard error,
 * the message of a failure included. What the runner does (exit status, run and end, writing) is not there.
 */
export async function inProcess(command: AnyCommand, argv: readonly string[], input = ''): Promise<Outcome> {
  const invocation = parse(command, argv)
  const said: string[] = []
  const tell = (message: string) => void said.push(message)
  const messages: Messages = {
    say: tell,
    warn: tell,
    detail: () => {},
    progress: () => {},
    clear: () => {},
    error: error => tell(String(error)),
  }
  const context = createContext(invocation, messages, new AbortController().signal, followUpstream(), () => true)
  const outcome: Outcome = { lines: [], records: [], said: '', error: undefined, cached: 0 }
  try {
    for await (const output of invocation.command.run(items(input, invocation.command), invocation.options as never, context))
      outcome.lines.push(line(output))
  } catch (error) {
    outcome.error = error as Error
    const origin = error instanceof RecordFault && error.origin ? `${error.origin.file}:${error.origin.line}: ` : ''
    tell(`${origin}${outcome.error.message}`)
  }
  context.cache.close()
  outcome.records = outcome.lines.filter(text => text.startsWith('{')).map(text => JSON.parse(text))
  outcome.said = said.join('\n')
  outcome.cached = context.count.cached
  return outcome
}

async function* items(input: string, command: AnyCommand): AsyncGenerator<Item> {
  const kinds = new Set<string>([...command.reads, 'barrier'])
  for (const [n, text] of input.split('\n').entries()) if (text) yield parseLine(Buffer.from(text), { file: '-', line: n + 1 }, kinds).item
}

function line(output: Output): string {
  if (output.kind === 'foreign') return Buffer.from(output.bytes as Uint8Array).toString()
  return JSON.stringify(isItem(output) ? output.record : output)
}
