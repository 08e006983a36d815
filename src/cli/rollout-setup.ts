import { availableParallelism } from 'node:os'
import { backendOf } from '../engine/backend-of.js'
import type { ChatThread } from '../model/chat-thread.js'
import { protocol } from '../model/protocol.js'
import type { NativeModel } from '../policy/native.js'
import { openPolicy, parsePolicy } from '../policy/parse-policy.js'
import type { Policy } from '../policy/policy.js'
import { UsageError } from '../record/fault.js'
import { schemaOf } from '../rollout/run-rollout.js'
import type { Sampler } from '../rollout/sample-group.js'
import type { RolloutSettings } from '../rollout/settings.js'
import { createToolRunner } from '../tools/call.js'
import { createLimit } from '../tools/limit.js'
import { openTree } from '../tools/open-tree.js'
import type { Context } from './command.js'
import type { RolloutValues } from './rollout-options.js'
import { toolsetOf } from './tool-options.js'

export type Setup = {
  policy: Policy
  chat?: ChatThread
  native?: NativeModel
  settings: RolloutSettings
  sampler: Sampler
  close(): Promise<void>
}

/** Opens what the options name: policy, words, tools. The caller closes it. */
export async function setUp(options: RolloutValues, context: Context): Promise<Setup> {
  const spec = parsePolicy(options.policy)
  if (options.onPolicy !== undefined && spec.kind !== 'native')
    throw new UsageError(`--on-policy takes --policy native:MODEL, not ${options.policy}`)
  if (options.onPolicy !== undefined && spec.kind === 'native' && spec.adapter !== null)
    throw new UsageError(`--on-policy takes the adapters from ${options.onPolicy}: leave out @${spec.adapter}`)
  if (options.noise > 0 && spec.kind !== 'lexical') throw new UsageError(`--noise takes --policy lexical, not ${options.policy}`)
  const toolset = toolsetOf(options)
  const thinking = options.thinking === 'on'
  const wanted = options.prompt ?? 'full'
  const opened = await openPolicy(spec, {
    native: { backend: backendOf(options.device), dtype: options.dtype, threads: options.threads, maxBatch: options.concurrency },
    thinking,
    tokenizer: options.tokenizer,
    keyFile: options.keyFile,
    noise: options.noise,
    requestTimeoutMs: options.requestTimeout * 1000,
    retries: options.retries,
    tools: wanted === 'full' ? toolset.tools.map(schemaOf) : null,
    note: context.detail,
  })
  const { policy, chat, native } = opened
  const own = chat?.settings
  const settings: RolloutSettings = {
    toolset,
    runner: createToolRunner({ toolset, cache: context.cache, cores: availableParallelism() }),
    protocol: protocol(options.prompt ?? own?.prompt ?? 'full', { maxTurns: options.maxTurns, maxCalls: options.maxCalls }),
    sampling: {
      temperature: options.temperature,
      topK: options.topK,
      topP: options.topP,
      minP: options.minP,
      repetitionPenalty: options.repetitionPenalty,
    },
    limits: {
      maxTokens: options.maxTokens,
      turnTokens: Math.min(options.maxTokens, options.maxTurnTokens ?? own?.turn_tokens ?? options.maxTokens),
      context: contextOf(options.maxContext, chat),
      maxTurns: options.maxTurns,
      maxCalls: options.maxCalls,
      issueChars: options.maxIssueChars ?? own?.issue_chars ?? 16_000,
    },
    thinking,
    seed: context.seed,
  }
  const sampler: Sampler = {
    policy,
    chat,
    settings,
    samples: options.samplesPerPrompt,
    limit: createLimit(options.concurrency),
    cache: context.cache,
    table: 'results',
    openTree,
  }
  const close = async () => {
    await policy.close()
    await native?.close()
    await chat?.close()
  }
  return { ...opened, settings, sampler, close }
}

/** The shortest of what was asked for, what the model's directory says and what the model can. */
function contextOf(asked: number | undefined, chat: ChatThread | undefined): number {
  if (!chat) return asked ?? Number.MAX_SAFE_INTEGER
  const most = Math.min(chat.maxPositions, chat.settings.context ?? chat.maxPositions)
  if (asked !== undefined && asked > chat.maxPositions)
    throw new UsageError(`--max-context ${asked}: the model has ${chat.maxPositions} positions`)
  return asked ?? most
}
