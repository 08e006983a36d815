/**
 * An option is declared once; help, man page, config file and the README's tables are rendered from the table.
 *
 * `option.choice(['a', 'b'], 'a', 'what it decides')`. A default of undefined means "not set".
 */
export type Option<V> = {
  type: 'string' | 'number' | 'boolean' | 'choice' | 'list'
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
}

export type OptionTable = Record<string, Option<any>>
export type OptionValues<T extends OptionTable> = { [K in keyof T]: T[K] extends Option<infer V> ? V : never }

type Extra<V> = Partial<Pick<Option<V>, 'alias' | 'min' | 'max' | 'integer' | 'metavar' | 'check'>>

export const option = {
  string: <D extends string | undefined>(value: D, about: string, extra: Extra<string> = {}): Option<D extends string ? string : string | undefined> =>
    ({ type: 'string', default: value, about, ...extra }) as never,
  number: <D extends number | undefined>(value: D, about: string, extra: Extra<number> = {}): Option<D extends number ? number : number | undefined> =>
    ({ type: 'number', default: value, about, ...extra }) as never,
  integer: <D extends number | undefined>(value: D, about: string, extra: Extra<number> = {}): Option<D extends number ? number : number | undefined> =>
    ({ type: 'number', integer: true, default: value, about, ...extra }) as never,
  flag: (about: string, extra: Extra<boolean> = {}): Option<boolean> => ({ type: 'boolean', default: false, about, ...extra }),
  choice: <C extends string, D extends C | undefined>(choices: readonly C[], value: D, about: string, extra: Extra<C> = {}): Option<D extends C ? C : C | undefined> =>
    ({ type: 'choice', choices, default: value, about, ...extra }) as never,
  list: (about: string, extra: Extra<string[]> = {}): Option<string[]> => ({ type: 'list', default: [], about, ...extra }),
}
