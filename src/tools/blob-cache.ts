/**
 * Contents of blobs by object id, shared by all trees of a process: neighbouring commits differ in few files. The least recently used go when more than
 * `capacity` bytes are held; a blob of more than a quarter of that is not kept.
 */
export function createBlobCache(capacity: number) {
  const blobs = new Map<string, Blob>()
  let held = 0

  const get = (oid: string): Blob | undefined => {
    const blob = blobs.get(oid)
    if (blob) {
      blobs.delete(oid)
      blobs.set(oid, blob)
    }
    return blob
  }
  const put = (oid: string, bytes: Buffer): Blob => {
    const known = get(oid)
    if (known) return known
    const blob: Blob = { bytes, binary: isBinary(bytes) }
    if (bytes.length > capacity / 4) return blob
    blobs.set(oid, blob)
    held += bytes.length
    for (const [oldest, { bytes }] of blobs) {
      if (held <= capacity) break
      blobs.delete(oldest)
      held -= bytes.length
    }
    return blob
  }
  return { get, put }
}

export type BlobCache = ReturnType<typeof createBlobCache>

/** `folded`: what a search that ignores case looks at, made when first asked for. */
export type Blob = { bytes: Buffer; binary: boolean; folded?: Buffer; foldsBeyondAscii?: boolean }

/** A NUL among the first 8,000 bytes, as git decides (xdiff-interface.c, `buffer_is_binary`). */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8000).includes(0)
}
