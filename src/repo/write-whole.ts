import { renameSync, writeFileSync } from 'node:fs'

let serial = 0

/** Writes a small file so that readers see all of it or none: a temporary name beside it, then rename(2). */
export function writeWhole(file: string, text: string): void {
  const fresh = `${file}.${process.pid}.${serial++}.new`
  writeFileSync(fresh, text)
  renameSync(fresh, file)
}
