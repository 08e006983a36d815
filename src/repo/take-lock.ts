import { linkSync, writeFileSync } from 'node:fs'
import { discardTemporary, temporaryName } from '../record/temporary.js'
import { writeFailure } from '../record/write-failure.js'

/**
 * Makes a lock file appear, complete or not at all; false when there is one. link(2) of a finished file fails, like O_EXCL, when the name is taken, so that
 * nobody judges a half-written one. Throws FatalError E_WRITE.
 */
export function takeLock(file: string, text: string): boolean {
  const complete = temporaryName(file)
  try {
    writeFileSync(complete, text)
    linkSync(complete, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw writeFailure(error, file)
    return false
  } finally {
    discardTemporary(complete)
  }
}
