import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import type {
  Adapter,
  BackendName,
  LoraConfig,
  LossOptions,
  Model,
  OptimizerOptions,
  SamplingParams,
  StepRequest,
  TrainGroup,
  TrainSequence,
} from '#cg/engine/types.js'

/** A random Qwen3 of 2 layers, 200 tokens, context 40,960. */
export const tiny = 'fixtures/golden/engine/models/qwen3-tied'

export const targets = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const
export const rank4: LoraConfig = { rank: 4, alpha: 8, targets: [...targets] }
export const adam: OptimizerOptions = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1 }
export const plainSampling: SamplingParams = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 }

export const grpo: LossOptions = {
  kind: 'policy',
  aggregation: 'grpo',
  epsilonLow: 0.2,
  epsilonHigh: 0.28,
  cispoCap: 5,
  kl: 0.02,
  klBiasCorrection: false,
  maxCompletionLength: 64,
}

export function load(dir = tiny, options: { backend?: BackendName; threads?: number; realVocab?: number } = {}): Promise<Model> {
  return loadEngine().loadModel(dir, { backend: 'reference', threads: 2, ...options })
}

/** Numbers that look random and are the same everywhere (splitmix32). */
export function numbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let z = state
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32
  }
}

export function tokens(seed: number, length: number, vocab = 200): Int32Array {
  const next = numbers(seed)
  return Int32Array.from({ length }, () => Math.floor(next() * vocab))
}

export function join32(...parts: Int32Array[]): Int32Array {
  return Int32Array.from(parts.flatMap(part => [...part]))
}

/** Groups of rollouts that share a prompt, some a first turn too; two generated spans each, advantages of both signs. */
export function rolloutGroups(count: number, members: number, seed = 1): TrainGroup[] {
  return Array.from({ length: count }, (_, index) => {
    const prompt = tokens(seed + index * 100, 20 + 7 * index)
    const turn = tokens(seed + index * 100 + 1, 9)
    const sequences = Array.from({ length: members }, (_, sample): TrainSequence => {
      const first = sample % 2 === 0 ? turn : tokens(seed + index * 100 + 10 + sample, 6)
      const observation = tokens(seed + index * 100 + 2, 11)
      const last = tokens(seed + index * 100 + 30 + sample, 3 + sample * 4)
      const begin = prompt.length
      const again = begin + first.length + observation.length
      return {
        ids: join32(prompt, first, observation, last),
        spans: Int32Array.of(begin, begin + first.length, again, again + last.length),
        advantages: Float32Array.of(sample % 2 ? -0.7 : 1.1, sample % 3 ? 0.4 : -0.9),
        temperature: 1,
      }
    })
    return { index, sequences }
  })
}

export function lossTokens(groups: TrainGroup[]): number {
  let sum = 0
  for (const group of groups)
    for (const { spans } of group.sequences) for (let i = 0; i < spans.length; i += 2) sum += spans[i + 1]! - spans[i]!
  return sum
}

export function stepOf(groups: TrainGroup[], loss: LossOptions = grpo): StepRequest {
  const rollouts = groups.reduce((sum, group) => sum + group.sequences.length, 0)
  return { groups, loss, denominators: { rollouts, tokens: lossTokens(groups) }, klAdapter: null, lr: 1e-2, clip: 1, maxRowsPerPass: 4096 }
}

/** A temporary directory for the length of `use`. */
export async function scratch<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'cg-native-'))
  try {
    return await use(dir)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** The bytes of an adapter's tensors. */
export function adapterBytes(adapter: Adapter): Promise<Buffer> {
  return scratch(async dir => {
    await adapter.save(dir)
    return readFileSync(join(dir, 'adapter_model.safetensors'))
  })
}

/** A copy of a checkpoint directory with config.json changed. */
export function copyModel(from: string, to: string, change: (config: Record<string, unknown>) => void = () => {}): void {
  cpSync(from, to, { recursive: true })
  const file = join(to, 'config.json')
  const config = JSON.parse(readFileSync(file, 'utf8'))
  change(config)
  writeFileSync(file, JSON.stringify(config))
}

export async function rejection(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work
  } catch (error) {
    return error as Error & { code: string }
  }
  throw new Error('expected a rejection')
}
