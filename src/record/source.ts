import { createReadStream } from 'node:fs'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { FatalError } from './fault.js'

/** Bytes at the head of formats that people hand us by mistake, and what to do about them. */
const foreignFormats: [magic: string, what: string, advice: string][] = [
  ['28b52ffd', 'zstd data', "pipe it through 'zstd -dc'"],
  ['425a68', 'bzip2 data', "pipe it through 'bzip2 -dc'"],
  ['fd377a585a00', 'xz data', "pipe it through 'xz -dc'"],
  ['50415231', 'a Parquet file', 'convert it to one JSON object a line first'],
  ['504b0304', 'a zip archive', 'unpack it first'],
  ['fffe', 'UTF-16 text', 'convert it to UTF-8'],
  ['feff', 'UTF-16 text', 'convert it to UTF-8'],
]

const mark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The bytes of a file (`-`: standard input), or of `given` under its name, without a UTF-8 byte order mark; gzip is recognised by its first bytes and unpacked.
 *
 * Ends quietly when `signal` aborts. Throws FatalError E_READ for a file that cannot be read, for cut or corrupt gzip data, and for formats that are no text.
 */
export async function* source(file: string, signal?: AbortSignal, given?: Readable): AsyncGenerator<Buffer> {
  const input: Readable = given ?? (file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1 << 18 }))
  const stop = () => input.destroy()
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const raw = peeked(input)
    const head = await raw.head
    const format = foreignFormats.find(([magic]) => head.toString('hex').startsWith(magic))
    if (format) throw new FatalError('E_READ', `${file}: ${format[1]}, not JSON: ${format[2]}`)
    const gzip = head[0] === 0x1f && head[1] === 0x8b
    yield* withoutMark(gzip ? (pipeline(raw.chunks, createGunzip({ chunkSize: 1 << 17 }), () => {}) as AsyncIterable<Buffer>) : raw.chunks)
  } catch (error) {
    if (signal?.aborted || error instanceof FatalError) {
      if (error instanceof FatalError) throw error
      return
    }
    throw new FatalError('E_READ', `${file}: ${reason(error as NodeJS.ErrnoException)}`)
  } finally {
    signal?.removeEventListener('abort', stop)
    input.destroy()
  }
}

/** The stream's chunks, and the first of them (six bytes or a line, where there are as many) ahead of time. */
function peeked(input: Readable): { head: Promise<Buffer>; chunks: AsyncGenerator<Buffer> } {
  const iterator = (input as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  const head = (async () => {
    let first: Buffer = Buffer.alloc(0)
    while (first.length < 6 && !first.includes(10)) {
      const next = await iterator.next()
      if (next.done) break
      first = first.length === 0 ? next.value : Buffer.concat([first, next.value])
    }
    return first
  })()
  async function* chunks() {
    const first = await head
    if (first.length > 0) yield first
    for (;;) {
      const next = await iterator.next()
      if (next.done) return
      yield next.value
    }
  }
  return { head, chunks: chunks() }
}

/** Without the UTF-8 byte order mark that they may begin with. */
async function* withoutMark(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let first: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of chunks) {
    if (first === undefined) yield chunk
    else {
      first = first.length === 0 ? chunk : Buffer.concat([first, chunk])
      if (first.length < 3) continue
      yield first.subarray(0, 3).equals(mark) ? first.subarray(3) : first
      first = undefined
    }
  }
  if (first !== undefined && first.length > 0) yield first
}

function reason(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
      return 'no such file: check the name'
    case 'EISDIR':
      return "a directory: name its files, for example 'DIR/*.ndjson'"
    case 'EACCES':
      return 'permission denied: make it readable'
    case 'Z_BUF_ERROR':
      return 'the gzip data ends early: fetch or pack the file again'
    case 'Z_DATA_ERROR':
    case 'Z_ERRNO':
      return 'the gzip data is damaged: fetch or pack the file again'
    default:
      return error.message
  }
}
