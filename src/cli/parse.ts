import yargs from 'yargs'
import { UsageError } from '../record/fault.js'
import type { AnyCommand } from './command.js'
import { readConfig } from './config.js'
import { flagName, type OptionTable, type SharedValues, sharedOptions } from './options.js'
import { didYouMean } from './suggest.js'
import { settle } from './values.js'

/** What the command line asks for: which command, with which options, on which files. */
export type Invocation = {
  command: AnyCommand
  options: Record<string, unknown>
  shared: SharedValues
  args: Record<string, string[]>
  files: string[]
  /** Names in the tables that were given by flag or configuration. */
  given: ReadonlySet<string>
}

/** Shared options of which one would silently override the other. */
const exclusive = [
  ['no-cache', 'cache'],
  ['no-cache', 'refresh'],
  ['no-cache', 'cache-only'],
  ['refresh', 'cache-only'],
] as const

/**
 * Parses a command line (without node and script) against a command's table and the shared one.
 *
 * The first positional that names a subcommand selects it, wherever options stand. Flags win over `--config`, which wins over the defaults; of a flag that is
 * given twice the last counts. Throws UsageError for anything unknown, with a suggestion, and for values of the wrong type.
 */
export function parse(root: AnyCommand, argv: readonly string[]): Invocation {
  const union = Object.assign({}, ...Object.values(root.subcommands ?? {}).map(sub => sub.options), root.options)
  const [first] = raw(argv, union).positionals
  const selected = first === undefined ? undefined : root.subcommands?.[first]
  const command = selected ?? root
  const { flags, positionals } = raw(argv, command.options)
  if (command.unavailable && !flags.has('help') && !flags.has('version')) throw new UsageError(command.unavailable)
  const asked = ['help', 'version', 'schema'].some(name => flags.has(name))
  if (selected) positionals.shift()
  else if (root.subcommandOnly && !asked) throw new UsageError(missingSubcommand(root, first))

  const table: OptionTable = { ...command.options, ...sharedOptions }
  for (const name of Object.keys(command.options))
    if (flagName(name) in sharedOptions) throw new Error(`${command.name}: --${flagName(name)} is a shared option`)
  const known = new Set(Object.keys(table).map(flagName))
  for (const flag of flags.keys())
    if (!known.has(flag)) throw new UsageError(`unknown option ${dashed(flag)}${flag.length > 1 ? didYouMean(flag, known, '--') : ''}`)

  const configFile = flags.get('config')
  const configurable = new Set([...known].filter(name => !['config', 'help', 'version', 'schema'].includes(name)))
  const config = typeof configFile === 'string' ? readConfig(configFile, configurable) : new Map<string, unknown>()
  const own = settle(command.options, flags, config, String(configFile))
  const shared = settle(sharedOptions, flags, config, String(configFile))
  for (const [one, other] of exclusive)
    if (shared.given.has(one) && shared.given.has(other)) throw new UsageError(`--${one} contradicts --${other}: leave one out`)
  const { args, files } = asked ? { args: {}, files: [] } : split(command, positionals)
  return {
    command,
    options: own.values,
    shared: shared.values as SharedValues,
    args,
    files,
    given: new Set([...own.given, ...shared.given]),
  }
}

function missingSubcommand(root: AnyCommand, first: string | undefined): string {
  const names = Object.keys(root.subcommands ?? {})
  return first === undefined
    ? `needs one of ${names.join(', ')}`
    : `unknown subcommand '${first}', not one of ${names.join(', ')}${didYouMean(first, names)}`
}

/** Declared positionals first, then input files; a command without input takes no files. */
function split(command: AnyCommand, positionals: string[]): { args: Record<string, string[]>; files: string[] } {
  const rest = [...positionals]
  const args: Record<string, string[]> = {}
  for (const { name, optional, many } of command.positionals ?? []) {
    args[name] = many ? rest.splice(0) : rest.splice(0, 1)
    if (args[name].length === 0 && !optional) throw new UsageError(`${name} is missing`)
  }
  if (rest.length > 0 && command.standalone === true) throw new UsageError(`does not take '${rest[0]}'`)
  return { args, files: rest }
}

/** Flags by their long names, with text values (arrays for lists, numbers for counts), and what stands beside them. */
function raw(argv: readonly string[], options: OptionTable): { flags: Map<string, unknown>; positionals: string[] } {
  const table: OptionTable = { ...options, ...sharedOptions }
  const parser = yargs([])
    .locale('en')
    .help(false)
    .version(false)
    .exitProcess(false)
    .fail((message, error) => {
      throw new UsageError(worded(message ?? error.message))
    })
    .parserConfiguration({
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'duplicate-arguments-array': true,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'strip-aliased': true,
    })
  for (const [name, { type, alias }] of Object.entries(table))
    parser.option(flagName(name), {
      ...(alias ? { alias } : {}),
      ...(type === 'boolean' ? { boolean: true } : type === 'count' ? { count: true } : { string: true, nargs: 1 }),
    })

  const { _: positionals, $0: _script, ...parsed } = parser.parseSync([...argv]) as Record<string, unknown> & { _: string[]; $0: string }
  const flags = new Map<string, unknown>()
  for (const [flag, value] of Object.entries(parsed)) {
    const type = Object.entries(table).find(([name]) => flagName(name) === flag)?.[1].type
    if (value === undefined || (type === 'count' && value === 0)) continue
    flags.set(flag, Array.isArray(value) && type !== 'list' ? value.at(-1) : value)
  }
  return { flags, positionals: positionals.map(String) }
}

/** yargs' complaint in our words. */
function worded(message: string): string {
  const missing = /^Not enough arguments following: (\S+)/.exec(message)
  return missing ? `${dashed(missing[1]!)} needs a value` : message
}

function dashed(flag: string): string {
  return flag.length === 1 ? `-${flag}` : `--${flag}`
}
