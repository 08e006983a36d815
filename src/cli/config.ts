import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { FatalError, UsageError } from '../record/fault.js'
import { didYouMean } from './suggest.js'

/**
 * Options from a JSON or YAML file: a map of long names (`jobs: 4`). JSON is YAML, so one parser reads both.
 *
 * Throws UsageError with `FILE:LINE` for broken text, names that are given twice, and names that are not among `known`.
 */
export function readConfig(file: string, known: ReadonlySet<string>): Map<string, unknown> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new FatalError(
      'E_READ',
      `${file}: ${(error as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such file: check --config' : (error as Error).message}`,
    )
  }
  const { parseDocument } = createRequire(import.meta.url)('yaml') as typeof import('yaml') // only when there is a file to read
  const document = parseDocument(text, { uniqueKeys: true, prettyErrors: true })
  const [error] = document.errors
  if (error) {
    const line = error.linePos?.[0].line
    throw new UsageError(`${file}${line ? `:${line}` : ''}: not YAML or JSON: ${error.message.split(/ at line|\n/)[0]}`)
  }
  const value: unknown = document.toJS()
  if (value === null) return new Map()
  if (typeof value !== 'object' || Array.isArray(value))
    throw new UsageError(`${file}: not a map of options: write one 'name: value' a line`)
  for (const name of Object.keys(value))
    if (!known.has(name)) throw new UsageError(`${file}: unknown option '${name}'${didYouMean(name, known)}`)
  return new Map(Object.entries(value).filter(([, value]) => value !== null))
}
