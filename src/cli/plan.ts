import type { AnyCommand, Context } from './command.js'
import { flagName } from './options.js'
import type { Invocation } from './parse.js'

/** What `--dry-run` says: the command's own plan, or the options as they were resolved; then the input. */
export async function planLines(
  command: AnyCommand,
  { options, given }: Invocation,
  files: readonly string[],
  standalone: boolean,
  context: Context,
): Promise<string[]> {
  const own = (await command.plan?.(options as never, context)) ?? optionLines(options, given)
  return [
    ...own,
    `seed ${context.seed}, ${context.jobs} jobs`,
    standalone ? 'reads no records' : `reads ${files.map(file => (file === '-' ? 'standard input' : file)).join(', ')}`,
  ]
}

function optionLines(options: Record<string, unknown>, given: ReadonlySet<string>): string[] {
  return Object.entries(options).map(
    ([name, value]) =>
      `${flagName(name)}: ${value === undefined ? 'not set' : Array.isArray(value) ? value.join(', ') || 'none' : value}${given.has(name) ? '' : ' (default)'}`,
  )
}
