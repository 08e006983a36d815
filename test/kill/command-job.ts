import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A command that is killed and run again by the same words. */
export type Job = {
  name: string
  /** `bin/cg-x` and its arguments. They name files of the data and, in `work`, what the command makes. */
  command: [script: string, ...args: string[]]
  /** What goes in; nothing when left out. */
  input?: string
  /** Makes the state that a run begins with in the empty directory `work`. */
  begin?(): void
  /** Looks at what a run has made, beside its output and its files; throws when it is wrong. */
  check?(): Promise<void>
  /** Exit status of an uninterrupted run; 0 when left out. */
  status?: number
  /** It asks somebody who never says the same twice: what was written must have been kept. */
  unrepeatable?: boolean
  /** Makes output equal that may differ from run to run, beside `timing`. */
  plain?(text: string): string
}

/** Output without what a clock measured (stream contract, "Ids, cache, reruns"). */
export function timeless(text: string): string {
  return text
    .split('\n')
    .map(line => (line.includes('"timing"') ? JSON.stringify(withoutTiming(JSON.parse(line))) : line))
    .join('\n')
}

function withoutTiming(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTiming)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'timing')
      .map(([name, part]) => [name, withoutTiming(part)]),
  )
}

/**
 * Every file below a directory with a digest of its content, `timing` aside. Files that name a process or a moment, the cache and git's own files have none:
 * there the name counts. How git packs its objects depends on which commit was asked for first: that is left out.
 */
export function contents(dir: string, below = ''): Map<string, string> {
  const found = new Map<string, string>()
  for (const name of readdirSync(join(dir, below)).sort()) {
    const path = join(below, name)
    if (/\.git\/objects$/.test(path)) continue
    if (lstatSync(join(dir, path)).isDirectory()) {
      found.set(`${path}/`, '')
      for (const [file, digest] of contents(dir, path)) found.set(file, digest)
    } else found.set(path, nameAlone.test(path) ? '' : digestOf(join(dir, path)))
  }
  return found
}

const nameAlone = /^cache\.db|\.git\/|(^|\/)\.git$|(^|\/)(trainer\.json|lock)$|\.(tmp|new)$|\.lease\./

function digestOf(file: string): string {
  const bytes = readFileSync(file)
  const text = /\.(nd)?json$/.test(file)
  return createHash('sha256')
    .update(text ? timeless(bytes.toString()) : bytes)
    .digest('hex')
}

/** How two states of a directory differ, in words. */
export function differences(
  is: Map<string, string>,
  should: Map<string, string>,
): { missing: string[]; extra: string[]; changed: string[] } {
  return {
    missing: [...should.keys()].filter(name => !is.has(name)),
    extra: [...is.keys()].filter(name => !should.has(name)),
    changed: [...should].filter(([name, digest]) => is.has(name) && is.get(name) !== digest).map(([name]) => name),
  }
}
