import type { RecordFault } from '../record/fault.js'
import type { Item, Known, Output } from '../record/item.js'
import type { Fault, Kind, Run } from '../record/schema.js'
import type { Cache } from '../store/cache.js'
import type { OptionTable, OptionValues } from './options.js'

export { option } from './options.js'

/** What the runner hands to a command beside its records and options. */
export type Context = {
  /** `cg-rollout`, for messages. */
  name: string
  /** Decimal, 0 to 2^64 − 1. */
  seed: string
  jobs: number
  /** Seconds a record may take (`mapRecords` sees to it); undefined: no limit. */
  timeout?: number | undefined
  cache: Cache
  /** The file that the cache is in, `--no-cache` or not: for who looks after the file itself. */
  cacheFile: string
  /** Aborted by INT, TERM, HUP and by a reader that went away: stop starting work, finish what is in flight. */
  signal: AbortSignal
  /** A line on stderr, prefixed with the command's name; nothing with -q. */
  say(message: string): void
  /** Like say, but also with -q: something a person must know. */
  warn(message: string): void
  /** Shown with -v. */
  detail(message: string): void
  /** One rewritten line on a terminal: done of total (unknown: undefined) and a few words. */
  progress(done: number, total: number | undefined, words?: string): void
  /** Counts for the summary line; the runner counts all but `cached`. */
  count: { in: number; out: number; cached: number; faults: number }
  /** The `fault` record that stands for a record that failed, counted; throws without `--keep-going` and beyond `--max-faults`. `mapRecords` calls it. */
  fault(error: RecordFault, of: Known): Fault
  /** True when the input was read to its end, no signal came, and every upstream `run` has ended with ok or none was seen; known at the end of the input. */
  cleanEnd(): boolean
  /** The `run` records of upstream stages, in order. */
  upstream(): readonly Run[]
  /** Values of the declared positionals by name; of `many` all, else one, none for an optional one that is absent. */
  args: Readonly<Record<string, readonly string[]>>
  /** Was this option given, by flag or configuration file? By its name in the table. */
  given(option: string): boolean
  /** Is stdout a terminal (and there is no -o)? Commands that print for people do so only then. */
  terminal: boolean
  /** May escape sequences colour what is printed for people? */
  color: boolean
}

export type Example = [what: string, command: string]

export type Positional = { name: string; about: string; optional?: boolean; many?: boolean }

/**
 * One command, or one subcommand: what it is, its options, and what it does with its input. Everything shared (parsing, help, config file, records in and
 * out, run and end records, faults, signals, cache, progress, exit status) lives in the runner.
 */
export type Command<T extends OptionTable = OptionTable> = {
  /** `cg-eval`; of a subcommand with the command's: `cg-eval score`. */
  name: string
  /** One line for help, man page and README. */
  about: string
  /** Paragraphs for the man page and the end of --help. */
  notes?: string[]
  /** Kinds that `run` gets as Known items, barriers with them; everything else passes it by as Foreign. */
  reads: readonly Kind[]
  writes: readonly Kind[]
  /** Takes no records at all: stdin is not read (`cg-worktree list`). Some commands know only from their options and positionals. */
  standalone?: boolean | ((options: OptionValues<T>, args: Context['args']) => boolean)
  /** On a terminal it prints for people, or when its options say so: no `run` and `end` then. */
  people?: boolean | ((options: OptionValues<T>, terminal: boolean) => boolean)
  /** Why it does nothing by itself in this version: only --help and --version work, and its subcommands. */
  unavailable?: string
  /** Does nothing by itself: a subcommand must be named. */
  subcommandOnly?: boolean
  /** Positional arguments before the input files, e.g. `tool NAME JSON`. */
  positionals?: Positional[]
  /** Default of --jobs; else as many as there are cores. */
  jobs?: number
  options: T
  examples: Example[]
  subcommands?: Record<string, AnyCommand>
  /** Options that decide the result go into `run.options` (see `Option.decides`); a stage's cache keys are built by the stage itself. */
  run(input: AsyncIterable<Item>, options: OptionValues<T>, context: Context): AsyncIterable<Output>
  /** `--dry-run`: the resolved plan as lines for a person; reads no records. Default: the options. */
  plan?(options: OptionValues<T>, context: Context): Promise<string[]>
}

// biome-ignore lint/suspicious/noExplicitAny: whoever holds commands of several kinds cannot know the types of their options
export type AnyCommand = Command<any>

/** Types a command; the name is for reading. */
export function command<T extends OptionTable>(definition: Command<T>): Command<T> {
  return definition
}

/** A command that is only the sum of its subcommands. */
export function commandGroup(
  definition: Pick<Command, 'name' | 'about' | 'notes' | 'examples'> & { subcommands: Record<string, AnyCommand> },
): Command {
  return {
    ...definition,
    reads: [],
    writes: [],
    standalone: true,
    subcommandOnly: true,
    options: {},
    run: () => {
      throw new Error(`${definition.name} was run without a subcommand`)
    },
  }
}
