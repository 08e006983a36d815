import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { discardTemporary, temporaryName } from '../record/temporary.js'
import { writing } from '../record/write-failure.js'

/**
 * Writes a small file so that readers see all of it or none: a temporary name beside it, then rename(2). `durable`: its bytes reach the disk before its name
 * does, or a machine that loses power may come back with an empty file of that name.
 *
 * Throws FatalError E_WRITE; nothing is left then.
 */
export function writeWhole(file: string, text: string, { durable }: { durable: boolean }): void {
  const fresh = temporaryName(file)
  writing(file, () => {
    try {
      const fd = openSync(fresh, 'wx')
      try {
        const bytes = Buffer.from(text)
        for (let from = 0; from < bytes.length; ) from += writeSync(fd, bytes, from)
        if (durable) fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      renameSync(fresh, file)
    } catch (error) {
      discardTemporary(fresh)
      throw error
    }
  })
}
