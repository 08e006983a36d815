import { closeSync, fsyncSync, openSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Writes a small file so that it is whole after any crash: a temporary name, fsync, rename, fsync of the directory. */
export function writeDurably(file: string, text: string): void {
  const fresh = `${file}.${process.pid}.new`
  writeFileSync(fresh, text)
  sync(fresh)
  renameSync(fresh, file)
  sync(dirname(file))
}

/** Flushes every file of a directory, then the directory itself, to the disk. */
export function syncDirectory(dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isFile()) sync(join(dir, entry.name))
  sync(dir)
}

/** fsync(2) of a file or directory by name. */
export function sync(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
