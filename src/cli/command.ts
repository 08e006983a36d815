import type { Item, Output } from '../record/item.js'
import type { Kind } from '../record/schema.js'
import type { Cache } from '../store/cache.js'
import type { OptionTable, OptionValues } from './options.js'

/** What the runner hands to a command beside its records and options. */
export type Context = {
  /** `cg-rollout`, for messages. */
  name: string
  seed: string
  jobs: number
  cache: Cache
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
  /** Counts for the summary line. */
  count: { in: number; out: number; cached: number; faults: number }
  /** True when every upstream `run` has ended with ok, or none was seen; known at the end of the input. */
  cleanEnd(): boolean
  /** The `run` records of upstream stages, in order. */
  upstream(): readonly import('../record/schema.js').Run[]
  /** Is stdout a terminal? Commands that print for people do so only then. */
  terminal: boolean
}

export type Example = [what: string, command: string]

/**
 * One command, or one subcommand: what it is, its options, and what it does with its input. Everything shared (parsing, help, config file, records in and
 * out, run and end records, faults, signals, cache, progress, exit status) lives in the runner.
 */
export type Command<T extends OptionTable = OptionTable> = {
  name: string
  /** One line for help, man page and README. */
  about: string
  /** Paragraphs for the man page and the end of --help. */
  notes?: string[]
  /** Kinds that `run` gets as Known items; everything else passes it by as Foreign. */
  reads: readonly Kind[]
  writes: readonly Kind[]
  /** Takes no records at all: stdin is not read (`cg-worktree list`). */
  standalone?: boolean
  /** Positional arguments other than input files, e.g. `tool NAME JSON`. */
  positionals?: { name: string; about: string; optional?: boolean; many?: boolean }[]
  options: T
  examples: Example[]
  subcommands?: Record<string, Command<any>>
  /** Options that decide the result: they go into `run.options`, and a stage's cache keys are built from them by the stage itself. */
  run(input: AsyncIterable<Item>, options: OptionValues<T>, context: Context): AsyncIterable<Output>
  /** `--dry-run`: the resolved plan as lines for a person; reads no records. Default: the options. */
  plan?(options: OptionValues<T>, context: Context): Promise<string[]>
}

/** Types a command; the name is for reading. */
export function command<T extends OptionTable>(definition: Command<T>): Command<T> {
  return definition
}
