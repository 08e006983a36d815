import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A parsed JSON file of the reference data, or undefined when the directory does not have it. */
export function goldenFile<T>(dir: string, ...path: string[]): T | undefined {
  const file = join(dir, ...path)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

/** Names of the JSON files of a folder, sorted; none when it is not there. */
export function goldenNames(dir: string, folder: string): string[] {
  const path = join(dir, folder)
  if (!existsSync(path)) return []
  return readdirSync(path)
    .filter(name => name.endsWith('.json'))
    .sort()
}
