import type { Instance, PolicyIdentity } from '../record/schema.js'
import type { Tree } from '../tools/tree.js'

export type Sampling = { temperature: number; topK: number; topP: number; minP: number; repetitionPenalty: number }

export type Message = { role: 'system' | 'user' | 'assistant' | 'tool'; content: string }

/** One turn that a rollout asks of its policy. */
export type TurnRequest = {
  /** Names the rollout: draws, session and messages are keyed by it. */
  rollout: string
  /** From 0. */
  turn: number
  /** This is the last allowed turn: calls made in it will not be run. */
  last: boolean
  /** Calls of this turn that will be run. */
  maxCalls: number
  instance: Instance
  /** Place of the rollout in its group. */
  sample: number
  tree: Tree
  /** The conversation as text, observations as `tool` messages. */
  messages: readonly Message[]
  /** The conversation as tokens, up to and including the next assistant header; for policies that say `tokens: true`. */
  ids?: Int32Array
  maxTokens: number
  sampling: Sampling
  seed: bigint
  signal?: AbortSignal
}

export type TurnReply = {
  text: string
  /** Generated ids (the end-of-turn id included) and their log-probs, where the policy works on tokens. */
  ids?: Int32Array
  logprobs?: Float32Array
  /** What a server says it counted, where there are no ids. */
  usage?: { prompt: number; generated: number }
  /** `length`: a limit of tokens came before the end of the turn. Failures are exceptions, not replies. */
  stop: 'stop' | 'length'
}

/** Who answers. Batching is the policy's affair: turns of different rollouts that are submitted together may share it. */
export interface Policy {
  readonly identity: PolicyIdentity
  /** Works on token ids: replies carry ids and log-probs. */
  readonly tokens: boolean
  /** Directory of the model whose tokenizer and chat template a token policy uses. */
  readonly modelDir?: string
  /** Deterministic and free of sampling: the temperature and seed are no part of its results. */
  readonly scripted: boolean
  readonly logprobKind?: string
  submit(request: TurnRequest): Promise<TurnReply>
  /** The rollout is over: forget its session. */
  release(rollout: string): void
  close(): Promise<void>
}
