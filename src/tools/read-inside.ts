import { close, closeSync, constants, fstatSync, openSync, read, readSync, realpathSync } from 'node:fs'
import { promisify } from 'node:util'

const readSome = promisify(read)
const closeFile = promisify(close)
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants

/**
 * The bytes of a regular file below `root`; undefined for anything else: a link at any depth, a device, a pipe, nothing.
 *
 * Every component is opened from the one before without following links (through /proc/self/fd, for want of openat in Node), so a link that appears between
 * a check and its use cannot lead out. Without /proc the real path is compared instead.
 */
export async function readInside(root: string, name: Buffer): Promise<Buffer | undefined> {
  const fd = openInside(root, name)
  if (fd === undefined) return undefined
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) return undefined
    const bytes = Buffer.allocUnsafe(stat.size)
    let length = 0
    while (length < bytes.length) {
      const { bytesRead } = await readSome(fd, bytes, length, bytes.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return bytes.subarray(0, length)
  } finally {
    await closeFile(fd)
  }
}

/** The first bytes of a file, at most `length`; as `readInside`, but without waiting. */
export function headInside(root: string, name: Buffer, length: number): Buffer | undefined {
  const fd = openInside(root, name)
  if (fd === undefined) return undefined
  try {
    const bytes = Buffer.allocUnsafe(length)
    return fstatSync(fd).isFile() ? bytes.subarray(0, readSync(fd, bytes, 0, length, 0)) : undefined
  } finally {
    closeSync(fd)
  }
}

function openInside(root: string, name: Buffer): number | undefined {
  const parts = split(name)
  try {
    if (process.platform !== 'linux') return openByRealPath(root, name)
    let at = openSync(root, O_RDONLY | O_DIRECTORY)
    for (const [i, part] of parts.entries()) {
      const last = i === parts.length - 1
      try {
        const next = openSync(
          Buffer.concat([Buffer.from(`/proc/self/fd/${at}/`), part]),
          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY),
        )
        closeSync(at)
        at = next
      } catch (error) {
        closeSync(at)
        throw error
      }
    }
    return at
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

function openByRealPath(root: string, name: Buffer): number | undefined {
  const path = Buffer.concat([Buffer.from(`${realpathSync(root)}/`), name])
  const same = realpathSync(path, { encoding: 'buffer' }).equals(path)
  return same ? openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) : undefined
}

function split(name: Buffer): Buffer[] {
  return name
    .toString('latin1')
    .split('/')
    .map(part => Buffer.from(part, 'latin1'))
}
