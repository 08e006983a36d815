import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'

/** Bytes of a value above which packing pays. */
const packAbove = 4096

/** A value as it is stored: JSON, gzip above 4 KiB, and the first 16 bytes of the stored bytes' sha256. */
export type Stored = { value: Buffer; packed: 0 | 1; checksum: Buffer }

export function pack(value: unknown): Stored {
  const plain = Buffer.from(JSON.stringify(value))
  const packed = plain.length > packAbove
  const bytes = packed ? gzipSync(plain, { level: 4 }) : plain
  return { value: bytes, packed: packed ? 1 : 0, checksum: checksum(bytes) }
}

/** Undefined when the bytes are not those that were stored. */
export function unpack(stored: { value: Buffer; packed: number; checksum: Buffer }): unknown {
  if (!checksum(stored.value).equals(stored.checksum)) return undefined
  return JSON.parse((stored.packed ? gunzipSync(stored.value) : stored.value).toString())
}

function checksum(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest().subarray(0, 16)
}
