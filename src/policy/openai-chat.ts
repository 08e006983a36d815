import { parseCalls } from '../model/parse-calls.js'
import { RecordFault } from '../record/fault.js'
import { callText, type ScriptedCall, spacedJson } from './call-text.js'
import { type HttpClient, HttpRefusal } from './http-client.js'
import { extraFields, neutral } from './openai.js'
import type { Message, Policy, TurnReply, TurnRequest } from './policy.js'

export type ChatServer = { base: string; model: string; http: HttpClient; tools: readonly unknown[] | null; thinking: boolean }

/**
 * Chat completions: the server renders and encodes; only text comes back, so the rollouts are text-only.
 *
 * With `tools` the server's own form of calls is used both ways, and a turn's text has them as `<tool_call>` blocks; without, results go back as one user
 * message of `<tool_response>` blocks, as the brief prompt's models know them.
 */
export function openaiChat(server: ChatServer): Policy {
  let extras = true
  const ask = (request: TurnRequest) => server.http(`${server.base}/chat/completions`, chatBody(server, request, extras), request.signal)

  return {
    identity: { kind: 'openai', name: server.model, api: 'chat' },
    tokens: false,
    scripted: false,
    async submit(request) {
      try {
        return turnOf(await ask(request))
      } catch (error) {
        if (!extras || !(error instanceof HttpRefusal) || ![400, 422].includes(error.status) || !namesExtra(error.said)) throw error
        if (!neutral(request.sampling))
          throw new RecordFault('E_SERVER', `${error.message}: leave out --top-k, --min-p and --repetition-penalty, or use another server`)
        extras = false // a server that knows only OpenAI's fields, and nothing is lost without the others
        return turnOf(await ask(request))
      }
    },
    release: () => {},
    close: async () => {},
  }
}

function chatBody({ model, tools, thinking }: ChatServer, request: TurnRequest, extras: boolean) {
  const { sampling, maxTokens, seed } = request
  return {
    model,
    messages: tools ? withCalls(request.messages) : withResponses(request.messages),
    ...(tools ? { tools } : {}),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    max_tokens: maxTokens,
    // Members of a group must differ, and a rerun must not: the seed is of the rollout and the turn.
    seed: Number((seed ^ BigInt(`0x${request.rollout.slice(0, 13)}`) ^ BigInt(request.turn)) & 0x7fffffffn),
    ...(extras ? { ...extraFields(sampling), chat_template_kwargs: { enable_thinking: thinking } } : {}),
  }
}

function namesExtra(said: string): boolean {
  return /top_k|min_p|repetition_penalty|repeat_penalty|chat_template_kwargs|unrecognized|unknown (?:field|name|parameter|argument)|extra (?:inputs|fields)|additional propert/i.test(
    said,
  )
}

type ChatReply = {
  choices?: {
    finish_reason?: string | null
    message?: {
      content?: string | null
      reasoning?: string | null
      reasoning_content?: string | null
      tool_calls?: { function?: { name?: string; arguments?: string } }[] | null
    }
  }[]
  usage?: { prompt_tokens?: number; completion_tokens?: number }
}

function turnOf(reply: unknown): TurnReply {
  const { choices, usage } = reply as ChatReply
  const choice = choices?.[0]
  if (!choice?.message) throw new RecordFault('E_SERVER', 'the reply has no choices[0].message: is this a chat completions server?', true)
  if (choice.finish_reason === 'content_filter') throw new RecordFault('E_SERVER', "the server's content filter cut the reply")
  const { content, reasoning, reasoning_content, tool_calls } = choice.message
  const thought = reasoning ?? reasoning_content
  const text = [thought ? `<think>\n${thought}\n</think>\n` : '', content ?? '', (tool_calls ?? []).map(callBlock).join('\n')]
  return {
    text: text.filter(Boolean).join('\n'),
    stop: choice.finish_reason === 'length' ? 'length' : 'stop',
    usage: { prompt: usage?.prompt_tokens ?? 0, generated: usage?.completion_tokens ?? 0 },
  }
}

/** A call in the protocol's form; arguments that do not parse stay as they are, and will be answered [bad call]. */
function callBlock(call: { function?: { name?: string; arguments?: string } }): string {
  const { name = '', arguments: text = '{}' } = call.function ?? {}
  try {
    return callText([{ name, arguments: JSON.parse(text || '{}') as ScriptedCall['arguments'] }])
  } catch {
    return `<tool_call>\n{"name": ${spacedJson(name)}, "arguments": ${text}}\n</tool_call>`
  }
}

/** Calls and results in the server's form: after an assistant message with k calls, k tool messages follow. */
function withCalls(messages: readonly Message[]): unknown[] {
  let pending: string[] = []
  return messages.map((message, m) => {
    if (message.role === 'tool') return { role: 'tool', tool_call_id: pending.shift() ?? `call_${m}`, content: message.content }
    const calls = message.role === 'assistant' ? parseCalls(message.content) : []
    if (calls.length === 0) return message
    pending = calls.map((_, i) => `call_${m}_${i}`)
    return {
      role: 'assistant',
      content: message.content.slice(0, Math.max(0, message.content.indexOf('<tool_call>'))).trimEnd(),
      tool_calls: calls.map((call, i) => ({
        id: pending[i],
        type: 'function',
        function: call.bad ? { name: 'unreadable', arguments: '{}' } : { name: call.name, arguments: JSON.stringify(call.arguments) },
      })),
    }
  })
}

function withResponses(messages: readonly Message[]): { role: string; content: string }[] {
  const out: { role: string; content: string }[] = []
  let results = 0
  for (const message of messages) {
    if (message.role !== 'tool') {
      results = 0
      out.push({ role: message.role, content: message.content })
      continue
    }
    const block = `<tool_response>\n${message.content}\n</tool_response>`
    if (results++ === 0) out.push({ role: 'user', content: block })
    else out.at(-1)!.content += `\n${block}`
  }
  return out
}
