import { closeSync, existsSync, openSync, readSync, renameSync, statSync } from 'node:fs'
import { applicationId } from './migrate.js'

/** A file itself, whatever its name is. */
export type Identity = string

/** Undefined: there is no such file. */
export function identityOf(file: string): Identity | undefined {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true })
  return stat && `${stat.dev}:${stat.ino}`
}

/**
 * Renames a damaged cache to `FILE.damaged-TIME`, with the log and the index that belong to it, and returns that name; undefined when `damaged` is no longer the
 * file of that name, because another process was first.
 *
 * Only while holding the file's lock, with the own connection closed: who opens a cache holds it too, until all three files are open. Processes that still have
 * the old one open go on with the files they have; SQLite does not remove those of a moved database by name. The database goes first: a log and an index
 * without it are leftovers, whoever was killed in between (setAsideLeftovers).
 */
export function setAside(file: string, damaged: Identity): string | undefined {
  if (identityOf(file) !== damaged) return undefined
  const aside = freeName(file)
  renameSync(file, aside)
  renameNeighbours(file, aside)
  return aside
}

/** A log without its database would be lost or, worse, be shared with another one. Only while holding the file's lock. */
export function setAsideLeftovers(file: string): string | undefined {
  if (existsSync(file) || !neighbours.some(end => existsSync(file + end))) return undefined
  const aside = freeName(file)
  renameNeighbours(file, aside)
  return aside
}

const neighbours = ['-wal', '-shm']

function renameNeighbours(file: string, aside: string): void {
  for (const end of neighbours) if (existsSync(file + end)) renameSync(file + end, aside + end)
}

function freeName(file: string): string {
  const time = new Date().toISOString().replace(/[-:]|\..*/g, '')
  for (let n = 0; ; n++) {
    const name = `${file}.damaged-${time}${n === 0 ? '' : `-${n}`}`
    if (!['', ...neighbours].some(end => existsSync(name + end))) return name
  }
}

const magic = 'SQLite format 3\0'

/**
 * Whose a file is that SQLite cannot read, by its first bytes: a database of another program and records that were named by mistake are not ours to move.
 *
 * Only without a connection of this process to the file: closing it here would release that one's locks.
 */
export function whose(file: string): 'ours' | 'of another program' | 'records' {
  const head = Buffer.alloc(100)
  const fd = openSync(file, 'r')
  try {
    readSync(fd, head, 0, head.length, 0)
  } finally {
    closeSync(fd)
  }
  if (head.toString('latin1', 0, 16) === magic) {
    const id = head.readUInt32BE(68)
    // a cache whose first commit is still in its log has one page and no number yet
    return id === applicationId || (id === 0 && statSync(file).size <= 4096) ? 'ours' : 'of another program'
  }
  return /^\s*[[{]/.test(head.toString('latin1')) || (head[0] === 0x1f && head[1] === 0x8b) ? 'records' : 'ours'
}
