import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  write,
} from 'node:fs'
import { dirname } from 'node:path'
import { FatalError } from '../record/fault.js'
import { discardTemporary, sweepTemporaries, temporaryName } from '../record/temporary.js'
import { writeFailure } from '../record/write-failure.js'

export type Sink = {
  /** Takes bytes to write; resolves when there is room for more. Throws ReaderGone, or FatalError E_WRITE. */
  write(bytes: string | Uint8Array): Promise<void> | undefined
  /** Waits until everything is written. */
  drain(): Promise<void>
  /** After a drain: makes FILE appear when all is well; keeps what there is under another name, which it returns, when not. Throws FatalError E_WRITE. */
  finish(ok: boolean): string | undefined
}

/** The reader of standard output went away: the end of the work, and no failure. */
export class ReaderGone extends Error {
  constructor() {
    super('the reader of the output went away')
    this.name = 'ReaderGone'
  }
}

/** Bytes that may wait to be written before the producer has to. */
const room = 1 << 20

/**
 * Standard output, or with `file` a file that appears complete or not at all: written under another name beside it, synced and renamed.
 *
 * A device, a named pipe or an open descriptor (/dev/stdout) is written to as it is: the rename would put a file in its place, for everybody. A link stays one.
 * Throws FatalError E_WRITE for what cannot be written.
 */
export function openSink(file: string | undefined): Sink {
  if (file === undefined || file === '-') {
    const { write, drain } = writer(1, 'standard output')
    return { write, drain, finish: () => undefined }
  }
  const there = statOf(file)
  if (there?.isDirectory()) throw new FatalError('E_WRITE', `${file}: a directory: name a file in it`)
  if (there && (!there.isFile() || isDescriptor(file))) return straight(file)
  return whole(there ? realpathSync(file) : file)
}

/** Another name in the file's own directory, which becomes the file's when all is written. */
function whole(file: string): Sink {
  sweepTemporaries(file)
  const partial = temporaryName(file)
  const fd = opened(partial, file)
  const { write, drain, written } = writer(fd, file)
  return {
    write,
    drain,
    finish: ok => {
      try {
        if (ok) fsyncSync(fd)
        closeSync(fd)
        if (ok) {
          renameSync(partial, file)
          syncDirectory(dirname(file))
        } else if (written() > 0) {
          renameSync(partial, `${file}.partial`)
          return `${file}.partial`
        }
        return undefined
      } catch (error) {
        throw writeFailure(error, file)
      } finally {
        discardTemporary(partial) // a disk that is full every night must not fill up with these
      }
    },
  }
}

/** Writes at the end of what stands at `file` already. A named pipe waits for its reader here. */
function straight(file: string): Sink {
  const fd = opened(file, file, constants.O_WRONLY | constants.O_APPEND)
  const { write, drain } = writer(fd, file)
  return {
    write,
    drain,
    finish: () => {
      closeSync(fd)
      return undefined
    },
  }
}

/**
 * Writes to a descriptor in the order given, off the main thread: a full pipe must not stop timers and signals. What comes while a write is under way goes out
 * with the next one.
 */
function writer(fd: number, name: string) {
  let waiting: Uint8Array[] = []
  let size = 0
  let written = 0
  let failed: Error | undefined
  let active: Promise<void> | undefined

  const work = async () => {
    while (waiting.length > 0 && !failed) {
      const bytes = waiting.length === 1 ? waiting[0]! : Buffer.concat(waiting)
      waiting = []
      size = 0
      try {
        await writeAll(fd, bytes)
        written += bytes.length
      } catch (error) {
        failed = (error as NodeJS.ErrnoException).code === 'EPIPE' ? new ReaderGone() : (writeFailure(error, name) as Error)
      }
    }
    active = undefined
  }
  const check = () => {
    if (failed) throw failed
  }
  return {
    write(bytes: string | Uint8Array): Promise<void> | undefined {
      check()
      const chunk = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
      waiting.push(chunk)
      size += chunk.length
      active ??= work()
      return size < room ? undefined : active.then(check)
    },
    async drain() {
      await active
      check()
    },
    written: () => written,
  }
}

async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    try {
      from += await new Promise<number>((resolve, reject) =>
        write(fd, bytes, from, bytes.length - from, null, (error, count) => (error ? reject(error) : resolve(count))),
      )
    } catch (error) {
      // somebody who shares the pipe made it non-blocking
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

/** Undefined where nothing stands, or nobody may look: opening says why. */
function statOf(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** A link such as /dev/stdout, /dev/fd/3, /proc/self/fd/3: what it leads to was opened by somebody, to be appended to perhaps. */
function isDescriptor(file: string): boolean {
  const directory = realpathSync(dirname(file))
  return lstatSync(file).isSymbolicLink() && (directory === '/dev' || directory.startsWith('/proc/'))
}

function opened(path: string, file: string, flags: string | number = 'w'): number {
  try {
    return openSync(path, flags)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && !existsSync(dirname(file)))
      throw new FatalError('E_WRITE', `${file}: there is no such directory: make it first`)
    throw writeFailure(error, file)
  }
}

function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
