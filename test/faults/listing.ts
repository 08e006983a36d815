import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '#cg/record/canonical.js'

/** Every file below a directory and what is in it, as a digest; without what a clock measured. `leave`: paths that are not looked at. */
export function listing(dir: string, leave = /\/(trainer\.json|lock)$/): Record<string, string> {
  const files: Record<string, string> = {}
  for (const name of (readdirSync(dir, { recursive: true }) as string[]).sort()) {
    const path = join(dir, name)
    if (leave.test(name)) continue
    files[name] = statSync(path).isFile()
      ? sha256(/json$/.test(name) ? timeless(readFileSync(path, 'utf8')) : readFileSync(path))
      : 'directory'
  }
  return files
}

/** The lines of an output without what a clock measured. */
export function timeless(text: string): string {
  return text.replace(/"timing":\{[^{}]*\}/g, '"timing":{}')
}
