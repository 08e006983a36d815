import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type ChatThread, openChatThread } from '../model/chat-thread.js'
import { UsageError } from '../record/fault.js'
import { bm25Policy } from './bm25.js'
import { apiKey, createHttpClient } from './http-client.js'
import { lexicalPolicy } from './lexical.js'
import type { NativeModel, NativeOptions } from './native.js'
import { openaiPolicy } from './openai.js'
import type { Policy } from './policy.js'
import { replayPolicy } from './replay.js'

/** A policy as the command line names it. */
export type PolicySpec =
  | { kind: 'native'; model: string; adapter: string | null }
  | { kind: 'openai'; base: string; model?: string }
  | { kind: 'bm25'; k: number }
  | { kind: 'lexical' }
  | { kind: 'replay'; file: string }

export type PolicyOptions = {
  native: NativeOptions
  thinking: boolean
  /** `openai:` with token ids: the checkpoint directory whose tokenizer and template the server's model has. */
  tokenizer?: string | undefined
  keyFile?: string | undefined
  /** `lexical`: the share of its decisions that are flawed. */
  noise?: number | undefined
  requestTimeoutMs: number
  retries: number
  /** Schemas of the tools, where the prompt style gives them to the template. */
  tools: readonly unknown[] | null
  note?: ((message: string) => void) | undefined
}

const forms = 'native:MODEL[@ADAPTER], openai:URL[#NAME], bm25[:K], lexical or replay:FILE'

/** Reads a policy's name. Throws UsageError that says what the forms are, and what may have been meant. */
export function parsePolicy(text: string): PolicySpec {
  const [kind, rest] = split(text)
  switch (kind) {
    case 'native': {
      if (!rest) throw new UsageError(`--policy ${text}: which model? write native:MODEL, a directory or a name in $CG_MODELS`)
      const at = rest.lastIndexOf('@')
      return at > 0
        ? { kind, model: modelDirectory(rest.slice(0, at)), adapter: directory(rest.slice(at + 1), 'adapter') }
        : { kind, model: modelDirectory(rest), adapter: null }
    }
    case 'openai': {
      if (!/^https?:\/\/./.test(rest))
        throw new UsageError(`--policy ${text}: write openai:URL, for example openai:http://localhost:8000/v1`)
      const [base, model] = rest.split(/#(.*)/s)
      return { kind, base: base!, ...(model ? { model } : {}) }
    }
    case 'bm25': {
      const k = rest === '' ? 2 : Number(rest)
      if (!Number.isInteger(k) || k < 1) throw new UsageError(`--policy ${text}: write bm25, or bm25:K with a number of files`)
      return { kind, k }
    }
    case 'lexical':
      if (rest) throw new UsageError(`--policy ${text}: lexical takes nothing behind the colon`)
      return { kind }
    case 'replay':
      if (!rest) throw new UsageError(`--policy ${text}: which rollouts? write replay:FILE`)
      return { kind, file: rest }
    default:
      throw new UsageError(`--policy ${text}: not a policy${meant(text)}: write ${forms}`)
  }
}

/** Where a native model is: the directory of that name, else the one in $CG_MODELS. */
export function modelDirectory(name: string): string {
  const models = process.env.CG_MODELS
  if (isDirectory(name)) return name
  if (models && isDirectory(join(models, name))) return join(models, name)
  throw new UsageError(`model ${name}: no such directory${models ? `, and none in $CG_MODELS (${models})` : '; $CG_MODELS is not set'}`)
}

/** Opens what a spec names, its tokenizer with it where it works on tokens. `native` stays open for other adapters of the same model. */
export async function openPolicy(
  spec: PolicySpec,
  options: PolicyOptions,
): Promise<{ policy: Policy; chat?: ChatThread; native?: NativeModel }> {
  switch (spec.kind) {
    case 'native': {
      const chat = openChatThread(spec.model, { thinking: options.thinking })
      const { openNativeModel } = await import('./native.js')
      const native = await openNativeModel(spec.model, chat, options.native)
      return { policy: await native.policy(spec.adapter, nativeName(spec)), chat, native }
    }
    case 'openai': {
      const { thinking, tools, tokenizer, note } = options
      const http = createHttpClient({ key: apiKey(options.keyFile), timeoutMs: options.requestTimeoutMs, retries: options.retries, note })
      const chat = tokenizer === undefined ? undefined : openChatThread(modelDirectory(tokenizer), { thinking })
      const policy = await openaiPolicy({ base: spec.base, model: spec.model, http, tools, thinking, chat, modelDir: tokenizer })
      return { policy, ...(chat ? { chat } : {}) }
    }
    case 'bm25':
      return { policy: bm25Policy(spec.k) }
    case 'lexical':
      return { policy: lexicalPolicy(options.noise) }
    case 'replay':
      return { policy: await replayPolicy(spec.file) }
  }
}

/** What a native policy is called in tables: its directories' last names. */
export function nativeName({ model, adapter }: { model: string; adapter: string | null }): string {
  const last = (path: string) => path.replace(/\/+$/, '').split('/').at(-1)!
  return adapter === null ? last(model) : `${last(model)}@${last(adapter)}`
}

function split(text: string): [kind: string, rest: string] {
  const colon = text.indexOf(':')
  return colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)]
}

function directory(path: string, what: string): string {
  if (isDirectory(path)) return path
  throw new UsageError(`${what} ${path}: no such directory`)
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function meant(text: string): string {
  if (/^https?:/.test(text)) return `; did you mean openai:${text}`
  if (/\.(nd)?jsonl?(\.gz)?$/.test(text)) return `; did you mean replay:${text}`
  if (existsSync(text.split('@')[0]!)) return `; did you mean native:${text}`
  const [kind] = split(text.toLowerCase())
  const close = ['native', 'openai', 'bm25', 'lexical', 'replay'].find(
    known => kind === known || (kind.length > 2 && (known.startsWith(kind.slice(0, 3)) || distance(kind, known) <= 2)),
  )
  return close ? `; did you mean ${close}` : ''
}

/** Letters that differ, counting a missing or additional one (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    row = next
  }
  return row[b.length]!
}
