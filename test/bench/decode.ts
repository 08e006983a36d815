import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { loadEngine } from '#cg/engine/load.js'
import type { Model, Precision, Sampler } from '#cg/engine/types.js'
import { type Bench, benchDirectory, type Say } from './bench.js'
import { cpuSeconds } from './cpu-seconds.js'
import { compared, type Figure } from './figure.js'
import { interleave } from './interleave.js'
import { type Peer, withPeer } from './peer.js'
import { python } from './python.js'

const promptTokens = 64
const newTokens = 128
/** Of all tokens, how many both sides have to choose alike: rounding may turn a close choice, and what follows it. */
const alike = 0.5
const greedy = { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 }

/**
 * Tokens a second of greedy decoding after a prompt, `batch` sequences at once, against llama.cpp with the same weights, in CPU seconds of one thread:
 * SmolLM2-135M in fp32 and bf16. Prompts differ, and filling them in is not timed.
 */
export function decode(batch: 1 | 8): Bench {
  return async function* (say) {
    const program = await python('decoder', say)
    const dir = await smollm2(program, say)
    for (const dtype of ['fp32', 'bf16'] as const) yield await decodeIn(dtype, batch, dir, program, say)
  }
}

async function decodeIn(dtype: Precision, batch: 1 | 8, dir: string, program: string, say: Say): Promise<Figure> {
  const weights = join(dir, dtype === 'fp32' ? 'f32.gguf' : 'bf16.gguf')
  return withPeer(program, 'llama_decode.py', [weights, `${batch}`], async peer => {
    const model = await loadEngine().loadModel(dir, { backend: 'cpu', threads: 1, dtype })
    try {
      say(`${dtype}: ${peer.name} and ${model.info.device}`)
      return await race(model, peer, dtype, batch, say)
    } finally {
      model.dispose()
    }
  })
}

async function race(model: Model, peer: Peer, dtype: Precision, batch: 1 | 8, say: Say): Promise<Figure> {
  const prompts = Array.from({ length: batch }, (_, s) =>
    Array.from({ length: promptTokens }, (_, i) => 1000 + ((i * 7919 + s * 104729) % 40_000)),
  )
  const total = batch * newTokens
  let ours: number[][] = []
  let theirs: number[][] = []
  const rates = await interleave(
    {
      ours: async () => {
        const { seconds, ids } = await decodeOurs(model, prompts)
        ours = ids
        return total / seconds
      },
      peer: async () => {
        const { seconds, ids } = await peer.ask<{ seconds: number; ids: number[][] }>({ prompts, tokens: newTokens })
        theirs = ids
        return total / seconds
      },
    },
    say,
  )
  const same = ours.flat().filter((id, i) => id === theirs.flat()[i]).length
  say(`${same} of ${total + batch} tokens are the same on both sides`)
  if (dtype === 'fp32' && same < alike * total) throw new Error('the two sides decode different texts: they do not have the same weights')
  return compared({
    bench: `decode-${batch}`,
    what: dtype,
    unit: 'tokens/s',
    ours: rates.ours,
    peer: rates.peer,
    peerName: peer.name,
    better: 'more',
    target: batch === 1 ? 1 : 3,
  })
}

/** Fills the prompts in up to their first token, then times the rest. */
async function decodeOurs(model: Model, prompts: number[][]): Promise<{ seconds: number; ids: number[][] }> {
  const sampler = model.sampler({ maxBatch: prompts.length })
  try {
    const first = await Promise.all(prompts.map((prompt, s) => generate(sampler, prompt, s, 1)))
    let rest: number[][] = []
    const seconds = await cpuSeconds(async () => {
      rest = await Promise.all(prompts.map((prompt, s) => generate(sampler, [...prompt, ...first[s]!], s, newTokens)))
    })
    return { seconds, ids: prompts.map((_, s) => [...first[s]!, ...rest[s]!]) }
  } finally {
    await sampler.close()
  }
}

async function generate(sampler: Sampler, ids: number[], sequence: number, maxTokens: number): Promise<number[]> {
  const { ids: generated } = await sampler.generate({
    ids: Int32Array.from(ids),
    adapter: null,
    sampling: greedy,
    stopIds: new Int32Array(),
    maxTokens,
    seed: 0n,
    rollout: BigInt(sequence),
    session: `${sequence}`,
  })
  return [...generated]
}

/** The checkpoint for us and its GGUF twins, made once. */
async function smollm2(program: string, say: Say): Promise<string> {
  const dir = join(benchDirectory, 'smollm2')
  if (existsSync(dir)) return dir
  const partial = `${dir}.partial`
  rmSync(partial, { recursive: true, force: true })
  say(`writing the checkpoint to ${dir}`)
  await execa(program, ['test/bench/peers/smollm2.py', partial], { stdin: 'ignore', stdout: 2, stderr: 2 })
  renameSync(partial, dir)
  return dir
}
