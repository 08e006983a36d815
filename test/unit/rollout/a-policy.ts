import { openChatThread } from '#cg/model/chat-thread.js'
import { protocol } from '#cg/model/protocol.js'
import type { Policy, TurnReply, TurnRequest } from '#cg/policy/policy.js'
import type { Instance } from '#cg/record/schema.js'
import type { RolloutSettings } from '#cg/rollout/settings.js'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import type { Toolset } from '#cg/tools/toolset.js'

export const block = (name: string, args: unknown) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`
export const answer = (...files: string[]) => `<answer>${JSON.stringify({ files, line_ranges: [] })}</answer>`
export const chat = openChatThread('fixtures/model', { thinking: false })

type Said = string | Error | ((request: TurnRequest) => string | TurnReply | Promise<string | TurnReply>)

/** Says the given texts, turn by turn. `requests` keeps what it was asked; a text that ends in `…` was cut off. */
export function saying(texts: Said[], { tokens = false } = {}): Policy & { requests: TurnRequest[] } {
  const requests: TurnRequest[] = []
  return {
    requests,
    identity: { kind: 'lexical', name: 'test' },
    tokens,
    scripted: true,
    logprobKind: 'test-1',
    async submit(request) {
      requests.push({ ...request, messages: [...request.messages] })
      const next = texts[request.turn] ?? ''
      if (next instanceof Error) throw next
      const said = typeof next === 'function' ? await next(request) : next
      if (typeof said !== 'string') return said
      return tokens ? spoken(said, request.maxTokens) : { text: said, stop: 'stop' }
    },
    release: () => {},
    close: async () => {},
  }
}

/** A text as the ids that a model would have sampled; cut where `maxTokens` end. */
export function spoken(text: string, maxTokens: number): TurnReply {
  const whole = [...chat.tokenizer.encode(text), chat.stopIds[0]!]
  const ids = Int32Array.from(whole.slice(0, maxTokens))
  const cut = ids.length < whole.length
  return {
    text: chat.tokenizer.decode(cut ? ids : ids.subarray(0, -1)),
    ids,
    logprobs: Float32Array.from(ids, (_, i) => -0.1 - i / 1000),
    stop: cut ? 'length' : 'stop',
  }
}

export function settings(limits: Partial<RolloutSettings['limits']> = {}, toolset: Toolset = codegrep()): RolloutSettings {
  const whole = { maxTokens: 4096, turnTokens: 4096, context: 4096, maxTurns: 4, maxCalls: 8, issueChars: 16_000, ...limits }
  return {
    toolset,
    runner: createToolRunner({ toolset, cache: noCache, cores: 2 }),
    protocol: protocol('brief', whole),
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    limits: whole,
    thinking: false,
    seed: '0',
  }
}

export const task: Instance = {
  instance_id: 'acme__lib-1',
  repo: 'acme/lib',
  base_commit: '0'.repeat(40),
  problem_statement: 'parse() fails',
}
