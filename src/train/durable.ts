import { closeSync, fsyncSync, openSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writing } from '../record/write-failure.js'
import { writeWhole } from '../repo/write-whole.js'

/** Writes a small file so that it is whole after any crash: a temporary name, fsync, rename, fsync of the directory. Throws FatalError E_WRITE. */
export function writeDurably(file: string, text: string): void {
  writeWhole(file, text, { durable: true })
  sync(dirname(file))
}

/** Flushes every file of a directory, then the directory itself, to the disk. Throws FatalError E_WRITE. */
export function syncDirectory(dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isFile()) sync(join(dir, entry.name))
  sync(dir)
}

/** fsync(2) of a file or directory by name. Throws FatalError E_WRITE. */
export function sync(path: string): void {
  writing(path, () => {
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  })
}
