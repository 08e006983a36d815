import { createHash } from 'node:crypto'
import { canonical } from '../record/canonical.js'
import type { CacheKey } from './cache.js'

/** sha256 of the key's canonical JSON, 32 bytes. */
export function keyDigest(key: CacheKey): Buffer {
  return createHash('sha256').update(canonical(key)).digest()
}
