import { constants } from 'node:os'
import { FatalError } from './fault.js'

/** What a person can do about a file that cannot be written, by the system's word for why (errno(3)). */
const causes: Record<string, string> = {
  ENOSPC: 'no space left on the device: free some',
  EDQUOT: 'the disk quota is used up: free some space',
  EROFS: 'the file system is read-only: mount it writable, or name another place',
  EIO: 'the disk failed (EIO): see the system log, and run it again',
  EACCES: 'permission denied: make it writable, or name another place',
  EPERM: 'permission denied: make it writable, or name another place',
  ENOENT: 'its directory is not there: make it, and run it again',
}

/** What is wrong and what to do, for one of the system's words; undefined for one that says too little by itself. */
export function writeCause(code: string): string | undefined {
  return causes[code]
}

/** The error to end with when a file cannot be written: FatalError E_WRITE that names it. What is no failure of a system call stays what it is. */
export function writeFailure(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof FatalError) return error
  const { code, errno, syscall, message } = error as NodeJS.ErrnoException
  if (code === undefined || syscall === undefined) return error
  const word = errno === -constants.errno.EDQUOT ? 'EDQUOT' : code // which Node does not know by name
  return new FatalError('E_WRITE', `${file}: ${writeCause(word) ?? `cannot be written (${message}): name another place`}`)
}

/** Does `work`, which writes `file`. Throws FatalError E_WRITE where Node's error would leave out which file it was, or what to do. */
export function writing<T>(file: string, work: () => T): T {
  try {
    const result = work()
    if (!(result instanceof Promise)) return result
    return result.catch(error => {
      throw writeFailure(error, file)
    }) as T
  } catch (error) {
    throw writeFailure(error, file)
  }
}
