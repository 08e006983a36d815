import { readFileSync } from 'node:fs'
import { RecordFault, UsageError } from '../record/fault.js'

export type HttpOptions = {
  /** Sent as a bearer token, shown nowhere. */
  key?: string | undefined
  /** Of one try, the whole reply included. */
  timeoutMs: number
  /** Tries after the first. */
  retries: number
  /** Told before each wait. */
  note?: ((message: string) => void) | undefined
  /** For tests: waits. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** Sends JSON (or asks, without a body) and gives the JSON that comes back. */
export type HttpClient = (url: string, body?: unknown, signal?: AbortSignal) => Promise<unknown>

/** A reply with an error status that is not worth another try. */
export class HttpRefusal extends RecordFault {
  constructor(
    readonly status: number,
    /** The server's own words, or its error code. */
    readonly said: string,
    url: string,
    retry: boolean,
  ) {
    super('E_SERVER', `${url}: status ${status}: ${said}${hint(status)}`, retry)
  }
}

/**
 * A client for OpenAI-compatible servers.
 *
 * Another try follows network errors, time-outs and the statuses 408, 409, 429 and ≥ 500 (the header x-should-retry overrides), but not an exhausted quota.
 * It waits for retry-after-ms, else Retry-After (seconds or a date), as far as that is under a minute, else min(0.5 · 2ⁿ, 8) s less up to a quarter. Fails with RecordFault
 * E_SERVER. The key is cut out of every message.
 */
export function createHttpClient({ key, timeoutMs, retries, note, sleep = wait }: HttpOptions): HttpClient {
  const secret = (text: string) => (key ? text.replaceAll(key, '…') : text)
  const headers: Record<string, string> = { accept: 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) }

  async function once(url: string, body: unknown, signal: AbortSignal | undefined): Promise<{ value: unknown } | Failure> {
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      const response = await fetch(url, {
        method: body === undefined ? 'GET' : 'POST',
        headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        redirect: 'error',
      })
      const text = await response.text()
      if (!response.ok) {
        const { code, message } = errorOf(text)
        const again = retryable(response, code)
        return { fault: new HttpRefusal(response.status, secret(message), url, again), again, waitMs: retryAfter(response.headers) }
      }
      try {
        return { value: JSON.parse(text) }
      } catch {
        return { fault: new RecordFault('E_SERVER', `${url}: the reply is not JSON: ${secret(oneLine(text))}`, true), again: true }
      }
    } catch (error) {
      signal?.throwIfAborted()
      const what = deadline.aborted ? `no reply within ${timeoutMs / 1000} s` : reason(error as Error)
      return { fault: new RecordFault('E_SERVER', `${url}: ${secret(what)}: is the server running?`, true), again: true }
    }
  }

  return async (url, body, signal) => {
    for (let n = 0; ; n++) {
      const result = await once(url, body, signal)
      if ('value' in result) return result.value
      if (!result.again || n >= retries) throw result.fault
      const ms = result.waitMs ?? Math.min(500 * 2 ** n, 8000) * (1 - Math.random() / 4)
      note?.(`${result.fault.message}; once more in ${(ms / 1000).toFixed(1)} s`)
      await sleep(ms, signal)
    }
  }
}

/** The key of a file, its first line, or of $OPENAI_API_KEY; undefined: none. */
export function apiKey(file: string | undefined): string | undefined {
  if (file === undefined) return process.env.OPENAI_API_KEY || undefined
  let key: string
  try {
    key = readFileSync(file, 'utf8').split('\n')[0]!.trim()
  } catch (error) {
    throw new UsageError(`--key-file ${file}: ${(error as Error).message}`)
  }
  if (key === '') throw new UsageError(`--key-file ${file}: its first line is empty: put the key there`)
  return key
}

type Failure = { fault: RecordFault; again: boolean; waitMs?: number | undefined }

function retryable(response: Response, code: string | undefined): boolean {
  const stated = response.headers.get('x-should-retry')
  if (stated === 'true') return true
  if (stated === 'false' || code === 'insufficient_quota') return false
  return [408, 409, 429].includes(response.status) || response.status >= 500
}

function retryAfter(headers: Headers): number | undefined {
  const ms = headers.get('retry-after-ms')
  const after = headers.get('retry-after')
  let wait = ms ? Number(ms) : Number.NaN
  if (Number.isNaN(wait) && after) wait = Number.isNaN(Number(after)) ? Date.parse(after) - Date.now() : Number(after) * 1000
  return wait >= 0 && wait < 60_000 ? wait : undefined
}

function errorOf(text: string): { code?: string; message: string } {
  try {
    const { error, detail, message } = JSON.parse(text) as {
      error?: { code?: unknown; type?: unknown; message?: unknown } | string
      detail?: unknown
      message?: unknown
    }
    const said = typeof error === 'string' ? error : (error?.message ?? message ?? detail)
    const code = typeof error === 'object' ? (error.code ?? error.type) : undefined
    return {
      ...(typeof code === 'string' ? { code } : {}),
      message: oneLine(typeof said === 'string' ? said : JSON.stringify(said ?? text)),
    }
  } catch {
    return { message: oneLine(text.replace(/<[^>]*>/g, ' ')) || 'no explanation' }
  }
}

function hint(status: number): string {
  if (status === 401 || status === 403) return ': check --key-file or $OPENAI_API_KEY'
  if (status === 404) return ': is the base address right? it usually ends with /v1'
  return ''
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim().slice(0, 300)

function reason(error: Error): string {
  const cause = error.cause as { code?: string; message?: string } | undefined
  return cause?.code ?? cause?.message ?? error.message
}

function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const stop = () => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
