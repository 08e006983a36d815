import { existsSync } from 'node:fs'
import { FatalError } from '../record/fault.js'

/**
 * Input files as they were named, quoted patterns (`'runs/*.ndjson'`) expanded in bytewise order; none is standard input.
 *
 * A name that exists is never taken as a pattern. Throws FatalError E_READ for a file that is not there and a pattern that nothing matches.
 */
export async function expandInputs(names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return ['-']
  const files: string[] = []
  for (const name of names) {
    if (name === '-' || existsSync(name)) files.push(name)
    else if (/[*?[\]{}]/.test(name)) {
      const { globby } = await import('globby') // costs as much as everything else at start: only when it is needed
      const found = await globby(name, { onlyFiles: true, expandDirectories: false })
      if (found.length === 0) throw new FatalError('E_READ', `${name}: no file matches: check the pattern`)
      files.push(...found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
    } else throw new FatalError('E_READ', `${name}: no such file: check the name`)
  }
  if (files.filter(file => file === '-').length > 1) throw new FatalError('E_READ', '- is given twice: standard input can be read once')
  return files
}
