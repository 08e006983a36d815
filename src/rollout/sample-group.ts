import { setMaxListeners } from 'node:events'
import type { ChatThread } from '../model/chat-thread.js'
import { noAnswer } from '../model/parse-answer.js'
import type { Policy } from '../policy/policy.js'
import { RecordFault } from '../record/fault.js'
import type { Instance, Rollout, Turn } from '../record/schema.js'
import type { Cache } from '../store/cache.js'
import type { Tree } from '../tools/tree.js'
import { type Played, runRollout } from './run-rollout.js'
import { instanceDigest, type RolloutSettings, rolloutId, samplingRecord } from './settings.js'

/** What samples: a policy, its words, its rules. */
export type Sampler = {
  policy: Policy
  chat?: ChatThread | undefined
  settings: RolloutSettings
  /** Rollouts per instance. */
  samples: number
  /** Lets so many rollouts of all groups run at once. */
  limit: <T>(work: () => Promise<T>) => Promise<T>
  cache: Cache
  table: 'results' | 'on-policy'
  openTree(instance: Instance, signal?: AbortSignal): Promise<Tree>
  watch?: ((turn: Turn) => void) | undefined
}

export type SampledGroup = { rollouts: Rollout[]; faults: RecordFault[] /** Every member came from the cache. */; cached: boolean }

/**
 * All rollouts of one instance, in order. Members that are in the cache are not run again, and come out with the same bytes.
 *
 * A member whose policy or tools fail becomes a rollout with `stop: "fault"`, and its fault is told. Rejects with RecordFault where no member can run (the
 * tree cannot be opened), and when `signal` is aborted.
 */
export async function sampleGroup(
  sampler: Sampler,
  instance: Instance,
  { pass, index }: { pass: number; index: number },
  signal?: AbortSignal,
): Promise<SampledGroup> {
  const { policy, settings, samples, cache, table } = sampler
  // Not left to openTree: whether an instance can be rolled out must not depend on what is cached.
  if (!instance.worktree)
    throw new RecordFault('E_NO_WORKTREE', `${instance.instance_id} has no worktree: put cg-worktree before this command`)
  if (signal) setMaxListeners(0, signal) // one a member and call
  const content = instanceDigest(instance)
  const group = { id: rolloutId(content, policy.identity, policy.scripted, settings, { pass }), size: samples, index }
  const faults: RecordFault[] = []
  let misses = 0
  let tree: Promise<Tree> | undefined

  const member = async (sample: number): Promise<Rollout> => {
    const id = rolloutId(content, policy.identity, policy.scripted, settings, { pass, sample })
    const key = { stage: 'rollout', version: 1, id, logprob_kind: policy.logprobKind ?? null }
    const known = cache.get(key) as Played | undefined
    if (known) return rolloutRecord(instance, id, group, sample, sampler, known)
    misses++
    tree ??= sampler.openTree(instance, signal)
    const opened = await tree
    try {
      const { chat, watch } = sampler
      const played = await sampler.limit(() => {
        signal?.throwIfAborted()
        return runRollout({ id, sample, instance, tree: opened, policy, chat, settings, signal, watch })
      })
      if (played.tool_timeouts === undefined) cache.put(key, played, { table })
      return rolloutRecord(instance, id, group, sample, sampler, played)
    } catch (error) {
      if (!(error instanceof RecordFault) || signal?.aborted) throw error
      faults.push(error)
      return rolloutRecord(instance, id, group, sample, sampler, failed(error))
    } finally {
      policy.release(id)
    }
  }

  const results = await Promise.allSettled(Array.from({ length: samples }, (_, sample) => member(sample)))
  const broken = results.find(result => result.status === 'rejected')
  if (broken) throw broken.reason
  return { rollouts: results.map(result => (result as PromiseFulfilledResult<Rollout>).value), faults, cached: misses === 0 }
}

function failed({ code, message }: RecordFault): Played {
  return {
    turns: [],
    answer: noAnswer,
    usage: { prompt: 0, generated: 0, calls: 0, turns: 0 },
    stop: 'fault',
    fault: { code, message },
  }
}

/** The instance and what the rollout adds. Patch and worktree stay behind: the target says what was to be found, and where files lie is this machine's affair. */
function rolloutRecord(
  instance: Instance,
  id: string,
  group: Rollout['group'],
  sample: number,
  { policy, settings }: Sampler,
  played: Played,
): Rollout {
  const { kind, v, patch, worktree, ...task } = instance
  return {
    kind: 'rollout',
    v: 1,
    id,
    ...task,
    group,
    sample,
    policy: policy.identity,
    toolset: settings.toolset.name,
    protocol: { name: settings.protocol.name, digest: settings.protocol.digest },
    sampling: samplingRecord(settings),
    ...played,
  }
}
