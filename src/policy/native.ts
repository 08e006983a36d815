import { loadEngine } from '../engine/load.js'
import type { Adapter, BackendName, EngineErrorShape, Precision, Sampler } from '../engine/types.js'
import type { ChatThread } from '../model/chat-thread.js'
import { adapterDigest, modelDigest } from '../model/model-digest.js'
import { RecordFault } from '../record/fault.js'
import type { PolicyIdentity } from '../record/schema.js'
import type { Policy } from './policy.js'

export type NativeOptions = {
  backend: BackendName
  dtype: Precision
  /** 0: as many as there are cores. */
  threads: number
  /** Sequences that share a decoding batch. */
  maxBatch: number
}

/** Which version of a run's policy an adapter is; none outside of runs. */
export type Provenance = { run_id: string; version: number; adapter_sha256: string }

/** A model in this process. Its policies (the base model, adapters) share one sampler: turns of several versions may share a batch. */
export type NativeModel = {
  modelSha256: string
  /** Who answers with this adapter; null: the base model. The digest is taken from the files unless given. */
  policy(adapterDir: string | null, name: string, provenance?: Provenance): Promise<Policy>
  close(): Promise<void>
}

/**
 * Loads a checkpoint into the native engine.
 *
 * Throws what the engine throws (E_CHECKPOINT …) and FatalError E_ENGINE where the addon is missing.
 */
export async function openNativeModel(
  dir: string,
  chat: ChatThread,
  { backend, dtype, threads, maxBatch }: NativeOptions,
): Promise<NativeModel> {
  const [modelSha256, model] = await Promise.all([
    modelDigest(dir),
    loadEngine().loadModel(dir, { backend, dtype, threads, realVocab: chat.tokenizer.vocab }),
  ])
  const sampler = model.sampler({ maxBatch })

  return {
    modelSha256,
    async policy(adapterDir, name, provenance) {
      const adapter = adapterDir === null ? null : await model.loadAdapter(adapterDir)
      const adapterSha256 = provenance?.adapter_sha256 ?? (adapterDir === null ? undefined : await adapterDigest(adapterDir))
      const identity: PolicyIdentity = {
        kind: 'native',
        name,
        model_sha256: modelSha256,
        ...(adapterSha256 ? { adapter_sha256: adapterSha256 } : {}),
        ...(provenance ? { run_id: provenance.run_id, version: provenance.version } : {}),
      }
      return nativePolicy(identity, dir, model.info.logprobKind, sampler, adapter, chat)
    },
    async close() {
      await sampler.close()
      model.dispose()
    },
  }
}

function nativePolicy(
  identity: PolicyIdentity,
  modelDir: string,
  logprobKind: string,
  sampler: Sampler,
  adapter: Adapter | null,
  chat: ChatThread,
): Policy {
  const stopIds = Int32Array.from(chat.stopIds)
  return {
    identity,
    tokens: true,
    modelDir,
    scripted: false,
    logprobKind,
    async submit({ rollout, ids, maxTokens, sampling, seed, signal }) {
      try {
        const generation = await sampler.generate(
          { ids: ids!, adapter, sampling, stopIds, maxTokens, seed, rollout: rolloutKey(rollout), session: rollout },
          signal,
        )
        const written = generation.stop === 'stop' ? generation.ids.subarray(0, -1) : generation.ids
        return { text: chat.tokenizer.decode(written), ids: generation.ids, logprobs: generation.logprobs, stop: generation.stop }
      } catch (error) {
        const { code } = error as EngineErrorShape
        if (code === 'E_CONTEXT' || code === 'E_NAN') throw new RecordFault(code, (error as Error).message)
        throw error
      }
    },
    release: rollout => sampler.release(rollout),
    async close() {
      adapter?.dispose()
    },
  }
}

/** The first 64 bits of a rollout's id: what its draws are keyed by. */
export function rolloutKey(id: string): bigint {
  return BigInt(`0x${id.slice(0, 16)}`)
}
