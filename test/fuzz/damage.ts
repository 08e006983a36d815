import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'

/** The files of a cache: database, log, index of the log. */
export const parts = ['', '-wal', '-shm'] as const

const page = 4096
/** Bytes of an input that make one act of damage. */
const step = 6

/**
 * Damages the files of a cache in place, as the bytes of `program` say: bits and numbers changed, ranges zeroed or filled, pages swapped or taken from another
 * cache, files cut, made longer, replaced by those of `others`, removed.
 *
 * `live`: a process has them open. Then no file is replaced or made shorter in its mapped index: that ends any SQLite process with SIGBUS, and no disk does it.
 */
export function damage(file: string, program: Buffer, others: readonly string[], live: boolean): void {
  for (let at = 0; at + step <= program.length; at += step) {
    const [where, act, a, b, c, d] = program.subarray(at, at + step) as unknown as [number, number, number, number, number, number]
    const part = parts[where % 3]!
    const target = file + part
    const source = others[(where >> 2) % others.length]! + part
    if (!existsSync(target)) {
      if (!live && act % 12 === 7 && existsSync(source)) copyFileSync(source, target)
      continue
    }
    const size = statSync(target).size
    const offset = Math.floor(((a * 256 + b) / 65536) * size)
    const begin = offset - (offset % page)
    switch (act % 12) {
      case 0:
        edit(target, offset, 1, bytes => bytes.fill((bytes[0] ?? 0) ^ (d | 1)))
        break
      case 1:
        edit(target, offset, 1 + (c % 4), bytes => bytes.fill(d))
        break
      case 2:
        edit(target, offset, 1 << (c % 14), bytes => bytes.fill(0))
        break
      case 3:
        if (!(live && part === '-shm')) truncateSync(target, offset)
        break
      case 4:
        edit(target, begin, page, bytes => bytes.fill(0))
        break
      case 5: {
        const from = Math.floor((c / 256) * size)
        const bytes = piece(target, from - (from % page), page)
        edit(target, begin, bytes.length, here => bytes.copy(here))
        break
      }
      case 6:
        if (existsSync(source)) {
          const bytes = piece(source, begin, page)
          edit(target, begin, bytes.length, here => bytes.copy(here))
        }
        break
      case 7:
        if (!live && existsSync(source)) copyFileSync(source, target)
        else if (existsSync(source) && part !== '-shm') writeFileSync(target, readFileSync(source))
        break
      case 8:
        if (!live) rmSync(target)
        break
      case 9:
        writeFileSync(target, Buffer.alloc(1 << (c % 14), d), { flag: 'a' })
        break
      case 10:
        edit(target, offset, 1 << (c % 14), bytes => {
          for (let i = 0; i < bytes.length; i++) bytes[i] = Math.imul(i + d, 0x9e3779b1) >>> 24
        })
        break
      default:
        edit(target, a % 100, 1, bytes => bytes.fill(d))
    }
  }
}

function piece(file: string, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  const fd = openSync(file, 'r')
  try {
    return bytes.subarray(0, readSync(fd, bytes, 0, length, offset))
  } finally {
    closeSync(fd)
  }
}

function edit(file: string, offset: number, length: number, change: (bytes: Buffer) => unknown): void {
  const bytes = piece(file, offset, length)
  change(bytes)
  const fd = openSync(file, 'r+')
  try {
    writeSync(fd, bytes, 0, bytes.length, offset)
  } finally {
    closeSync(fd)
  }
}
