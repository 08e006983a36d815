import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import type { Adapter, Model, TrainSequence } from '#cg/engine/types.js'
import { benchDirectory, type Say } from './bench.js'
import { type Peer, withPeer } from './peer.js'
import { python } from './python.js'

/**
 * The workload of lora-step-* and forward-logprobs: G rollouts of C tokens on one prompt of P, in a model of the shape of SmolLM2-135M with Qwen3's norms (hidden 576,
 * 30 layers, 9/3 heads of 64, intermediate 1536, vocabulary 49152, tied), LoRA of rank 16 on the seven linears, fp32.
 */
export type Workload = { model: Model; adapter: Adapter; peer: Peer; sequences: TrainSequence[] }

const P = 512
const C = 64
const G = 8
const vocab = 49152

type Answer = { seconds: number; loss: number; grad_norm: number | null; logprobs: number[] }

/** Opens PyTorch and our engine on the same weights, adapter and tokens, and closes both after `use`. The checkpoint is random; the peer writes it once. */
export async function withWorkload<T>(say: Say, use: (workload: Workload) => Promise<T>): Promise<T> {
  const dir = join(benchDirectory, 's576')
  mkdirSync(dir, { recursive: true })
  return withPeer(await python('trainer', say), 'lora_step.py', [dir], async peer => {
    const prefix = tokens(P, 1)
    const completions = Array.from({ length: G }, (_, g) => tokens(C, 2 + g))
    const weights = completions.map((_, g) => (2 * g) / (G - 1) - 1)
    await peer.ask({ prefix, completions, weights })
    const model = await loadEngine().loadModel(dir, { backend: 'cpu', threads: 1 })
    try {
      say(`${peer.name} and ${model.info.device}; ${P} + ${G} × ${C} tokens`)
      const sequences = completions.map((completion, g) => ({
        ids: Int32Array.from([...prefix, ...completion]),
        spans: Int32Array.of(P, P + C),
        advantages: Float32Array.of(weights[g]!),
        temperature: 1,
      }))
      return await use({ model, adapter: await model.loadAdapter(join(dir, 'adapter')), peer, sequences })
    } finally {
      model.dispose()
    }
  })
}

/** One run of the peer: its CPU seconds and what it computed. */
export function torchStep(peer: Peer, run: 'batched' | 'shared', backward: boolean): Promise<Answer> {
  return peer.ask<Answer>({ run, backward })
}

/** Throws when two sides that ought to compute the same do not: a figure would compare two things. */
export function agree(what: string, ours: ArrayLike<number>, theirs: ArrayLike<number>, bound: number): void {
  if (ours.length !== theirs.length) throw new Error(`${what}: ${ours.length} values of ours, ${theirs.length} of the peer`)
  for (let i = 0; i < ours.length; i++)
    if (!(Math.abs(ours[i]! - theirs[i]!) <= bound)) throw new Error(`${what}, place ${i}: ours ${ours[i]}, the peer's ${theirs[i]}`)
}

/** Token ids by a linear congruential generator; every list with its own seed. */
function tokens(n: number, seed: number): number[] {
  let state = BigInt(seed)
  return Array.from({ length: n }, () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn
    return Number(state >> 33n) % vocab
  })
}
