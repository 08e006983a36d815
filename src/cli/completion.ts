import yargs from 'yargs'
import type { AnyCommand } from './command.js'
import { flagName, type OptionTable, sharedOptions } from './options.js'

/** The shell function that `cg-x completion` prints; it asks the command itself for the words. */
export function completionScript(root: AnyCommand): Promise<string> {
  return new Promise((resolve, reject) => {
    void parserOf(root).parse(['completion'], {}, (error, _, output) => (error ? reject(error) : resolve(`${output}\n`)))
  })
}

/** Words that may follow what was typed so far (`cg-x --get-yargs-completions cg-x --sch`). */
export async function completions(root: AnyCommand, typed: readonly string[]): Promise<string[]> {
  return (await parserOf(root).getCompletion([...typed])) as unknown as string[]
}

function parserOf(root: AnyCommand) {
  const parser = withOptions(yargs([]).scriptName(root.name).locale('en').help(false).version(false), root.options)
  for (const [name, sub] of Object.entries(root.subcommands ?? {}))
    parser.command(name, sub.about, builder => withOptions(builder, sub.options))
  return parser.completion('completion', false)
}

function withOptions<P extends ReturnType<typeof yargs>>(parser: P, own: OptionTable): P {
  const table: OptionTable = { ...own, ...sharedOptions }
  for (const [name, { type, alias, about, choices }] of Object.entries(table))
    parser.option(flagName(name), {
      describe: about,
      ...(alias ? { alias } : {}),
      ...(choices ? { choices } : {}),
      ...(type === 'boolean' || type === 'count' ? { boolean: true } : { string: true }),
    })
  return parser
}
