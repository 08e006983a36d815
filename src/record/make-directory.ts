import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeFailure } from './write-failure.js'

/**
 * Makes a directory and those above it, where they are not there. Node's own recursive mkdir says "no such file or directory" when the disk is full or
 * read-only. Throws FatalError E_WRITE.
 */
export function makeDirectory(path: string): void {
  try {
    make(path)
  } catch (error) {
    throw writeFailure(error, path)
  }
}

function make(path: string, orphan = true): void {
  try {
    mkdirSync(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && orphan && dirname(path) !== path) {
      make(dirname(path))
      make(path, false) // once: an empty name is not there whatever one makes
    } else if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
