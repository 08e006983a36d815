import type { Protocol } from '../model/protocol.js'
import type { Sampling } from '../policy/policy.js'
import { contentId } from '../record/canonical.js'
import type { Instance, PolicyIdentity, SamplingRecord } from '../record/schema.js'
import type { ToolRunner, Toolset } from '../tools/toolset.js'

/** What all rollouts of a command have in common. */
export type RolloutSettings = {
  toolset: Toolset
  runner: ToolRunner
  protocol: Protocol
  sampling: Sampling
  limits: Limits
  thinking: boolean
  /** Decimal, 0 to 2^64 − 1. */
  seed: string
}

export type Limits = {
  /** Generated tokens of the whole rollout. */
  maxTokens: number
  /** Generated tokens of one turn. */
  turnTokens: number
  /** Tokens of the whole context. */
  context: number
  maxTurns: number
  /** Calls of one turn that are run. */
  maxCalls: number
  /** Code points of an issue. */
  issueChars: number
}

/** Which rollout of which instance: `pass` counts how often this content was seen before, `sample` the members of its group. */
export type Draw = { pass: number; sample: number }

/** The deciding content of an instance; where its files lie on this machine is not among it. */
export function instanceDigest({ instance_id, repo, base_commit, problem_statement }: Instance): string {
  return contentId('instance', [], { instance_id, repo, base_commit, problem_statement })
}

/** How a rollout was sampled, as its record states it. */
export function samplingRecord({ sampling, limits, thinking, seed }: RolloutSettings): SamplingRecord {
  return {
    temperature: sampling.temperature,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    repetition_penalty: sampling.repetitionPenalty,
    max_tokens: limits.maxTokens,
    turn_tokens: limits.turnTokens,
    max_turns: limits.maxTurns,
    max_calls: limits.maxCalls,
    issue_chars: limits.issueChars,
    thinking,
    seed,
  }
}

/**
 * Id of one rollout, and of its group when no sample is given: instance content, policy identity, digests of toolset and protocol, sampling, seed and pass
 * (stream contract, "Ids, cache, reruns"). A scripted policy has no chance in it: only its limits count. A model's name is where its files lie; its digests
 * say what it is.
 */
export function rolloutId(
  instance: string,
  policy: PolicyIdentity,
  scripted: boolean,
  settings: RolloutSettings,
  draw: Draw | { pass: number },
): string {
  const { toolset, protocol, limits } = settings
  const { name, ...content } = policy
  return contentId('sample' in draw ? 'rollout' : 'group', [instance], {
    policy: policy.model_sha256 ? content : { name, ...content },
    toolset: toolset.digest,
    protocol: protocol.digest,
    sampling: scripted ? { limits } : { ...samplingRecord(settings), context: limits.context },
    ...draw,
  })
}
