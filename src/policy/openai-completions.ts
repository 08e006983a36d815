import type { ChatThread } from '../model/chat-thread.js'
import { FatalError, RecordFault } from '../record/fault.js'
import type { HttpClient } from './http-client.js'
import { extraFields } from './openai.js'
import type { Policy, TurnReply } from './policy.js'

export type CompletionServer = { base: string; model: string; http: HttpClient; chat: ChatThread; modelDir: string }

/**
 * Completions with token ids in and out (vLLM: `prompt` as ids, `return_token_ids`): the conversation stays the tokens that were sampled.
 *
 * Log-probs are the server's, of whatever kind; a trainer computes its own. Throws FatalError E_SERVER_IDS for a server that gives no ids.
 */
export function openaiCompletions({ base, model, http, chat, modelDir }: CompletionServer): Policy {
  return {
    identity: { kind: 'openai', name: model, api: 'completions' },
    tokens: true,
    modelDir,
    scripted: false,
    logprobKind: 'openai-1',
    async submit({ ids, sampling, maxTokens, seed, rollout, turn, signal }) {
      const body = {
        model,
        prompt: Array.from(ids!),
        max_tokens: maxTokens,
        temperature: sampling.temperature,
        top_p: sampling.topP,
        ...extraFields(sampling),
        seed: Number((seed ^ BigInt(`0x${rollout.slice(0, 13)}`) ^ BigInt(turn)) & 0x7fffffffn),
        stop_token_ids: chat.stopIds,
        logprobs: 0,
        return_token_ids: true,
        skip_special_tokens: false,
      }
      return turnOf(await http(`${base}/completions`, body, signal), ids!, chat, base)
    },
    release: () => {},
    close: async () => {},
  }
}

type CompletionReply = {
  choices?: {
    finish_reason?: string | null
    token_ids?: unknown
    prompt_token_ids?: unknown
    logprobs?: { token_logprobs?: (number | null)[] } | null
  }[]
}

function turnOf(reply: unknown, prompt: Int32Array, chat: ChatThread, base: string): TurnReply {
  const choice = (reply as CompletionReply).choices?.[0]
  if (!choice) throw new RecordFault('E_SERVER', `${base}: the reply has no choices[0]`, true)
  const ids = tokenIds(choice.token_ids)
  const logprobs = choice.logprobs?.token_logprobs
  if (!ids || !logprobs)
    throw new FatalError(
      'E_SERVER_IDS',
      `${base}: this server gives no token ids and log-probs: leave out --tokenizer, and its rollouts will be text-only`,
    )
  const echoed = tokenIds(choice.prompt_token_ids)
  if (echoed && (echoed.length !== prompt.length || echoed.some((id, i) => id !== prompt[i])))
    throw new FatalError('E_SERVER_IDS', `${base}: the server changed the prompt's tokens: its model is not the one of --tokenizer`)
  const outside = ids.find(id => id >= chat.tokenizer.vocab)
  if (logprobs.length !== ids.length || logprobs.some(p => typeof p !== 'number') || outside !== undefined)
    throw new RecordFault(
      'E_SERVER',
      `${base}: ${ids.length} ids and ${logprobs.length} log-probs do not fit the vocabulary of --tokenizer`,
      true,
    )
  const cut = choice.finish_reason === 'length'
  const ended = ids.length > 0 && chat.stopIds.includes(ids.at(-1)!)
  if (!cut && !ended)
    throw new RecordFault('E_SERVER', `${base}: the reply leaves out the end-of-turn token: it cannot be continued token by token`)
  return {
    text: chat.tokenizer.decode(ended ? ids.slice(0, -1) : ids),
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(logprobs as number[]),
    stop: ended ? 'stop' : 'length',
  }
}

function tokenIds(value: unknown): number[] | undefined {
  return Array.isArray(value) && value.every(id => Number.isInteger(id) && id >= 0) ? (value as number[]) : undefined
}
