import { UsageError } from '../record/fault.js'
import { type AnyOption, flagName, type OptionTable } from './options.js'
import { didYouMean } from './suggest.js'

/**
 * A raw value, text from a flag or anything from a configuration file, as the option's type. Throws UsageError that says what would be right; `where` names the
 * place: `--lr`, or `lr in FILE`.
 */
export function convert(option: AnyOption, raw: unknown, where: string): unknown {
  const value = typed(option, raw, where)
  const reason = option.check?.(value as never)
  if (reason !== undefined) throw new UsageError(`${where}: ${show(raw)} ${reason}`)
  return value
}

function typed(option: AnyOption, raw: unknown, where: string): unknown {
  switch (option.type) {
    case 'boolean':
      if (typeof raw !== 'boolean') throw new UsageError(`${where}: ${show(raw)} is not true or false`)
      return raw
    case 'count':
      if (typeof raw !== 'number' || !Number.isInteger(raw) || raw < 0) throw new UsageError(`${where}: ${show(raw)} is not a count`)
      return raw
    case 'number':
      return numeric(option, raw, where)
    case 'list': {
      const values = Array.isArray(raw) ? raw : [raw]
      const wrong = values.find(value => typeof value === 'object')
      if (wrong !== undefined) throw new UsageError(`${where}: ${show(wrong)} is not a text`)
      return values.map(String)
    }
    case 'choice': {
      if (option.choices?.includes(String(raw))) return String(raw)
      throw new UsageError(
        `${where}: ${show(raw)} is none of ${option.choices?.join(', ')}${didYouMean(String(raw), option.choices ?? [])}`,
      )
    }
    case 'string':
      if (typeof raw === 'object') throw new UsageError(`${where}: ${show(raw)} is not a text`)
      return String(raw)
  }
}

function numeric(option: AnyOption, raw: unknown, where: string): number {
  const value = typeof raw === 'string' && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(raw) ? Number(raw) : raw
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new UsageError(`${where}: ${show(raw)} is not a number`)
  if (option.integer && !Number.isSafeInteger(value)) throw new UsageError(`${where}: ${show(raw)} is not a whole number`)
  if (option.min !== undefined && value < option.min) throw new UsageError(`${where}: ${show(raw)} is below ${option.min}`)
  if (option.max !== undefined && value > option.max) throw new UsageError(`${where}: ${show(raw)} is above ${option.max}`)
  return value
}

/** Values of a table: from flags, else from the configuration, else the defaults; and which of them were given. Keys of `flags` and `config` are flag names. */
export function settle(
  table: OptionTable,
  flags: ReadonlyMap<string, unknown>,
  config: ReadonlyMap<string, unknown>,
  configFile: string,
): { values: Record<string, unknown>; given: Set<string> } {
  const values: Record<string, unknown> = {}
  const given = new Set<string>()
  for (const [name, option] of Object.entries(table)) {
    const flag = flagName(name)
    if (flags.has(flag)) values[name] = convert(option, flags.get(flag), `--${flag}`)
    else if (config.has(flag)) values[name] = convert(option, config.get(flag), `${flag} in ${configFile}`)
    else {
      values[name] = option.default
      continue
    }
    given.add(name)
  }
  return { values, given }
}

function show(raw: unknown): string {
  return typeof raw === 'string' ? `'${raw}'` : JSON.stringify(raw)
}
