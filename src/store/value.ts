import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'

/** Bytes of a value above which packing pays. */
const packAbove = 4096

/** A value as it is stored: JSON, gzip above 4 KiB, and a checksum of its key and these bytes. */
export type Stored = { value: Buffer; packed: 0 | 1; checksum: Buffer }

export function pack(key: Buffer, value: unknown): Stored {
  const plain = Buffer.from(JSON.stringify(value))
  const packed = plain.length > packAbove ? 1 : 0
  const bytes = packed ? gzipSync(plain, { level: 4 }) : plain
  return { value: bytes, packed, checksum: checksum(key, packed, bytes) }
}

/** Undefined when this is not what was stored under the key, or is of types that nobody stored: a damaged file holds anything. */
export function unpack(key: Buffer, { value, packed, checksum: sum }: { [part in keyof Stored]: unknown }): unknown {
  if (!Buffer.isBuffer(value) || !Buffer.isBuffer(sum) || (packed !== 0 && packed !== 1)) return undefined
  if (!checksum(key, packed, value).equals(sum)) return undefined
  return JSON.parse((packed ? gunzipSync(value) : value).toString())
}

/** The first 16 bytes of the sha256 of key, form and value. */
export function checksum(key: Buffer, packed: number, value: Buffer): Buffer {
  return createHash('sha256').update(key).update(Buffer.of(packed)).update(value).digest().subarray(0, 16)
}

/** That of format 1: of the value alone. */
export function checksum1(value: Buffer): Buffer {
  return createHash('sha256').update(value).digest().subarray(0, 16)
}
