import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canonical, sha256 } from '../record/canonical.js'
import { FatalError } from '../record/fault.js'
import { writing } from '../record/write-failure.js'

/** One rollout to imitate: token ids, spans as pairs [begin, end), one weight per span, and what its log-probs are divided by. */
export type SpoolRow = { ids: number[]; spans: number[]; weights: number[]; temperature: number }

/** `key` is the sha256 of a row's content, `group` names the prompt that it shares with others. */
export type RowName = { key: string; group: string }

export type Spool = {
  add(group: string, row: SpoolRow): void
  readonly names: readonly RowName[]
  read(index: number): SpoolRow
  close(): void
}

/**
 * Rows on the disk, their names in memory: data that is read several times need not fit into memory. The file has no name, so no crash leaves it behind.
 *
 * Throws FatalError E_WRITE when the temporary directory ($TMPDIR) does not take them.
 */
export function createSpool(): Spool {
  const place = `temporary directory ${tmpdir()} ($TMPDIR)`
  const fd = writing(place, () => {
    const dir = mkdtempSync(join(tmpdir(), 'cg-spool-'))
    try {
      return openSync(join(dir, 'rows'), 'w+')
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
  const names: RowName[] = []
  const places: { at: number; bytes: number }[] = []
  let size = 0
  return {
    names,
    add(group, row) {
      const bytes = Buffer.from(JSON.stringify(row))
      let written = 0
      writing(place, () => {
        while (written < bytes.length) written += writeSync(fd, bytes, written, bytes.length - written, size + written)
      })
      names.push({ key: sha256(bytes), group })
      places.push({ at: size, bytes: bytes.length })
      size += bytes.length
    },
    read(index) {
      const { at, bytes } = places[index]!
      const buffer = Buffer.alloc(bytes)
      const got = readSync(fd, buffer, 0, bytes, at)
      if (got !== bytes) throw new FatalError('E_READ', `the spool gave ${got} of ${bytes} bytes: was the temporary directory emptied?`)
      return JSON.parse(buffer.toString()) as SpoolRow
    },
    close: () => closeSync(fd),
  }
}

/** The order of one pass over the rows: by sha256(seed, pass, content), equal contents as they came (stream contract, "Groups and barriers"). */
export function shuffled(names: readonly RowName[], seed: string, pass: number): number[] {
  const keys = names.map(({ key }) => sha256(canonical([seed, pass, key])))
  return names.map((_, index) => index).sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b))
}

/** Cuts passes into batches of `size` rows that run across them; the last one of all may be smaller. Ends after `passes`, or never when it is infinite. */
export function* batches(names: readonly RowName[], seed: string, passes: number, size: number): Generator<number[]> {
  if (names.length === 0) return
  let batch: number[] = []
  for (let pass = 0; pass < passes; pass++)
    for (const index of shuffled(names, seed, pass)) {
      batch.push(index)
      if (batch.length < size) continue
      yield batch
      batch = []
    }
  if (batch.length > 0) yield batch
}
