import type { ChatThread } from '../model/chat-thread.js'
import { FatalError } from '../record/fault.js'
import type { HttpClient } from './http-client.js'
import { openaiChat } from './openai-chat.js'
import { openaiCompletions } from './openai-completions.js'
import type { Policy } from './policy.js'

export type OpenaiOptions = {
  /** Address up to and including `/v1`. */
  base: string
  /** The server's name for the model; undefined: the only one it lists. */
  model?: string | undefined
  http: HttpClient
  /** Schemas of the tools, for chat servers and the `full` prompt; null: the prompt says it in words. */
  tools: readonly unknown[] | null
  thinking: boolean
  /** The model's tokenizer and template: token ids are sent and asked for. Without: chat, text only. */
  chat?: ChatThread | undefined
  modelDir?: string | undefined
}

/** A model behind an OpenAI-compatible server. Throws FatalError E_SERVER_MODEL where the server does not say which model is meant. */
export async function openaiPolicy(options: OpenaiOptions): Promise<Policy> {
  const base = options.base.replace(/\/+$/, '')
  const model = options.model ?? (await onlyModel(base, options.http))
  return options.chat
    ? openaiCompletions({ base, model, http: options.http, chat: options.chat, modelDir: options.modelDir! })
    : openaiChat({ base, model, http: options.http, tools: options.tools, thinking: options.thinking })
}

async function onlyModel(base: string, http: HttpClient): Promise<string> {
  const listed = (await http(`${base}/models`)) as { data?: { id?: unknown }[] }
  const names = (listed.data ?? []).map(m => m.id).filter(id => typeof id === 'string')
  if (names.length === 1) return names[0]!
  const which = names.length === 0 ? 'it lists none' : `it has ${names.slice(0, 6).join(', ')}`
  throw new FatalError('E_SERVER_MODEL', `${base}: say which model: ${which}: write openai:${base}#NAME`)
}

/** Sampling fields that OpenAI's own interface does not know; servers that do must get all of them, or their own defaults would decide. */
export type Extras = Record<string, unknown>

/** Does leaving these out change nothing? */
export function neutral(sampling: { topK: number; minP: number; repetitionPenalty: number }): boolean {
  return sampling.topK === 0 && sampling.minP === 0 && sampling.repetitionPenalty === 1
}

export function extraFields(sampling: { topK: number; minP: number; repetitionPenalty: number }): Extras {
  const { topK, minP, repetitionPenalty } = sampling
  return { top_k: topK, min_p: minP, repetition_penalty: repetitionPenalty, repeat_penalty: repetitionPenalty }
}
