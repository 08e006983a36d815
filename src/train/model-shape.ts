import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelInfo } from '../engine/types.js'
import { FatalError } from '../record/fault.js'

/** What memory depends on; a loaded model's `info` has it too. */
export type ModelShape = Pick<
  ModelInfo,
  'layers' | 'hidden' | 'heads' | 'kvHeads' | 'headDim' | 'intermediate' | 'vocab' | 'tied' | 'maxPositions'
> & { qkNorm: boolean }

/** Reads a checkpoint's config.json (Hugging Face; Qwen3, Qwen2, Llama), of a directory or by its own name, without loading a weight. Throws FatalError E_CHECKPOINT that names what is missing. */
export function readModelShape(place: string): ModelShape {
  const file = place.endsWith('.json') ? place : join(place, 'config.json')
  let config: Record<string, unknown>
  try {
    config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  } catch (error) {
    throw new FatalError('E_CHECKPOINT', `${file}: ${(error as Error).message}: name a Hugging Face checkpoint directory`)
  }
  const number = (name: string, otherwise?: number): number => {
    const value = config[name] ?? otherwise
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1)
      throw new FatalError('E_CHECKPOINT', `${file}: ${name} is missing or no positive number`)
    return value
  }
  const hidden = number('hidden_size')
  const heads = number('num_attention_heads')
  return {
    layers: number('num_hidden_layers'),
    hidden,
    heads,
    kvHeads: number('num_key_value_heads', heads),
    headDim: number('head_dim', Math.floor(hidden / heads)),
    intermediate: number('intermediate_size'),
    vocab: number('vocab_size'),
    maxPositions: number('max_position_embeddings'),
    tied: config.tie_word_embeddings === true,
    qkNorm: config.model_type === 'qwen3',
  }
}

/** Weights of the seven linears, of all layers. */
export function linearParameters(s: ModelShape): number {
  const q = s.heads * s.headDim
  const kv = s.kvHeads * s.headDim
  return s.layers * (2 * s.hidden * q + 2 * s.hidden * kv + 3 * s.hidden * s.intermediate)
}

/** All weights: linears, embedding and head, norms. */
export function parameters(s: ModelShape): number {
  const norms = s.layers * (2 * s.hidden + (s.qkNorm ? 2 * s.headDim : 0)) + s.hidden
  return linearParameters(s) + s.vocab * s.hidden * (s.tied ? 1 : 2) + norms
}
