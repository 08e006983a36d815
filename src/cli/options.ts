/**
 * An option is declared once; help, man page, config file and the README's tables are rendered from the table.
 *
 * `option.choice(['a', 'b'], 'a', 'what it decides')`. A default of undefined means "not set". A name in a table may be written in camel case:
 * `promptsPerStep` is `--prompts-per-step`.
 */
export type Option<V> = {
  type: 'string' | 'number' | 'boolean' | 'choice' | 'list' | 'count'
  default: V
  about: string
  alias?: string
  choices?: readonly string[]
  min?: number
  max?: number
  integer?: boolean
  /** What stands for the value in help: FILE, N, SEC … */
  metavar?: string
  /** Refuses a value with a reason. */
  check?: (value: NonNullable<V>) => string | undefined
  /** Does it decide what the output is? Then it is in `run.options` and the run's id. Default: yes, unless the value is a place (FILE, DIR). */
  decides?: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: the values of a table differ in type; OptionValues gives each its own
export type AnyOption = Option<any>
export type OptionTable = Record<string, AnyOption>
export type OptionValues<T extends OptionTable> = { [K in keyof T]: T[K] extends Option<infer V> ? V : never }

type Extra<V> = Partial<Pick<Option<V>, 'alias' | 'min' | 'max' | 'integer' | 'metavar' | 'check' | 'decides'>>

export const option = {
  string: <D extends string | undefined>(
    value: D,
    about: string,
    extra: Extra<string> = {},
  ): Option<D extends string ? string : string | undefined> => ({ type: 'string', default: value, about, ...extra }) as never,
  number: <D extends number | undefined>(
    value: D,
    about: string,
    extra: Extra<number> = {},
  ): Option<D extends number ? number : number | undefined> => ({ type: 'number', default: value, about, ...extra }) as never,
  integer: <D extends number | undefined>(
    value: D,
    about: string,
    extra: Extra<number> = {},
  ): Option<D extends number ? number : number | undefined> =>
    ({ type: 'number', integer: true, default: value, about, ...extra }) as never,
  flag: (about: string, extra: Extra<boolean> = {}): Option<boolean> => ({ type: 'boolean', default: false, about, ...extra }),
  choice: <C extends string, D extends C | undefined>(
    choices: readonly C[],
    value: D,
    about: string,
    extra: Extra<C> = {},
  ): Option<D extends C ? C : C | undefined> => ({ type: 'choice', choices, default: value, about, ...extra }) as never,
  list: (about: string, extra: Extra<string[]> = {}): Option<string[]> => ({ type: 'list', default: [], about, ...extra }),
  count: (about: string, extra: Extra<number> = {}): Option<number> => ({ type: 'count', default: 0, about, ...extra }),
}

/** The flag of a table's name: `promptsPerStep` and `prompts-per-step` are both `prompts-per-step`. */
export function flagName(name: string): string {
  return name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}

/** Is this option among those that decide the output? */
export function decides(option: AnyOption): boolean {
  return option.decides ?? !['FILE', 'DIR'].includes(option.metavar ?? '')
}

/** What every command takes; none of it decides the output, but for the seed, which `run` states by itself. */
export const sharedOptions = {
  output: option.string(undefined, 'write to FILE instead of standard output; it appears only when all is done', {
    alias: 'o',
    metavar: 'FILE',
  }),
  jobs: option.integer(undefined, 'records worked on at once; the output does not depend on it', {
    alias: 'j',
    min: 1,
    max: 4096,
    metavar: 'N',
  }),
  seed: option.string('0', 'the one seed of everything random, 0 to 2^64 - 1', {
    metavar: 'N',
    check: value =>
      /^\d{1,20}$/.test(value) && BigInt(value) < 2n ** 64n ? undefined : 'must be a whole number from 0 to 18446744073709551615',
  }),
  config: option.string(undefined, 'read options from a JSON or YAML file of long names; flags win', { metavar: 'FILE' }),
  'keep-going': option.flag('a record that fails becomes a fault record; exit 3 at the end', { alias: 'k' }),
  'max-faults': option.integer(undefined, 'with -k, give up after N faults', { min: 0, metavar: 'N' }),
  timeout: option.number(undefined, 'seconds that one record may take', { min: 0.001, metavar: 'SEC' }),
  'dry-run': option.flag('print the resolved plan and stop'),
  cache: option.string(undefined, 'the cache; default $CG_CACHE, else in the XDG cache directory', { metavar: 'FILE' }),
  'no-cache': option.flag('neither read nor write the cache'),
  refresh: option.flag('compute everything again and replace what the cache has'),
  'cache-only': option.flag('what is not in the cache is a fault'),
  'max-line': option.integer(16, 'longest input line, in MiB', { min: 1, max: 1024, metavar: 'MIB' }),
  quiet: option.flag('only errors and warnings on standard error', { alias: 'q' }),
  verbose: option.count('more detail; twice: stacks of errors', { alias: 'v' }),
  progress: option.choice(['auto', 'always', 'never'], 'auto', 'a line that shows how far the work is', { metavar: 'WHEN' }),
  color: option.choice(['auto', 'always', 'never'], 'auto', 'colours in messages', { metavar: 'WHEN' }),
  'no-run': option.flag('write no run and end records'),
  schema: option.flag('print the JSON Schema of the records read and written, and stop'),
  help: option.flag('print this help and stop', { alias: 'h' }),
  version: option.flag('print the version and stop', { alias: 'V' }),
}
export type SharedValues = OptionValues<typeof sharedOptions>
