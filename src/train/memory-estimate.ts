import type { LoraConfig, LoraTarget } from '../engine/types.js'
import { type ModelShape, parameters } from './model-shape.js'

const float = 4

/** Memory of a pass that the default row limit keeps within. */
const passBudget = 2 * 2 ** 30

export type MemoryEstimate = {
  /** Bytes. Frozen weights, widened to fp32. */
  weights: number
  /** LoRA factors, their gradient's partial sums, Adam's m and v. */
  adapter: number
  /** What forward keeps and backward needs beside it, for one pass of `rows` rows. */
  activations: number
  /** Logits of the loss tokens that are computed at once. */
  head: number
  total: number
  adapterParameters: number
  perRow: number
}

/** Rows of logits that the head computes at once. */
const headRows = 64

/**
 * What one training step holds in memory, in bytes, all in fp32 (the formulas of the model's layers; nothing is recomputed but norms and SiLU).
 *
 * @param rows token rows of one pass
 * @param groups of a step: their gradients are summed in a binary tree, log2 G + 1 partial sums alive
 */
export function estimateMemory(shape: ModelShape, lora: LoraConfig, rows: number, groups: number): MemoryEstimate {
  const adapterParameters = loraParameters(shape, lora)
  const partialSums = Math.ceil(Math.log2(Math.max(1, groups))) + 1
  const perRow = float * rowFloats(shape, lora)
  const weights = float * parameters(shape)
  const adapter = float * adapterParameters * (3 + partialSums)
  const activations = perRow * rows
  const head = float * headRows * shape.vocab
  return { weights, adapter, activations, head, total: weights + adapter + activations + head, adapterParameters, perRow }
}

/** Rows of one pass when nothing is said: what fits 2 GiB, in multiples of 64, at least a whole context of the model or 1,024. */
export function defaultRowsPerPass(shape: ModelShape, lora: LoraConfig): number {
  const fitting = Math.floor(passBudget / (float * rowFloats(shape, lora)) / 64) * 64
  return Math.max(fitting, Math.min(shape.maxPositions, 1024))
}

/** The estimate in words, for --dry-run. */
export function memoryLines(
  { weights, adapter, activations, head, total, adapterParameters, perRow }: MemoryEstimate,
  rows: number,
): string[] {
  return [
    `memory: at most about ${size(total)}`,
    `  frozen weights, fp32: ${size(weights)}`,
    `  adapter of ${adapterParameters.toLocaleString('en')} parameters, with gradients and Adam's m and v: ${size(adapter)}`,
    `  activations: up to ${size(activations)}, ${size(perRow)} for each of ${rows} token rows of a pass`,
    `  logits: ${size(head)} at once`,
  ]
}

/** Values that a token row keeps: per layer what backward reads, once what backward writes. */
function rowFloats(s: ModelShape, lora: LoraConfig): number {
  const q = s.heads * s.headDim
  const kv = s.kvHeads * s.headDim
  const norms = s.qkNorm ? q + kv + s.heads + s.kvHeads : 0
  const layer = 2 * s.hidden + 2 + 2 * q + 2 * kv + s.heads + norms + 2 * s.intermediate + lora.targets.length * lora.rank
  const once = 5 * s.hidden + s.intermediate + 2 * q + 2 * kv + (s.qkNorm ? q + kv : 0) + 3 * s.intermediate + lora.rank
  return s.layers * layer + once
}

/** Elements of A [r, in] and B [out, r] of every adapted linear. */
export function loraParameters(s: ModelShape, { rank, targets }: LoraConfig): number {
  const q = s.heads * s.headDim
  const kv = s.kvHeads * s.headDim
  const inAndOut: Record<LoraTarget, number> = {
    q_proj: s.hidden + q,
    k_proj: s.hidden + kv,
    v_proj: s.hidden + kv,
    o_proj: q + s.hidden,
    gate_proj: s.hidden + s.intermediate,
    up_proj: s.hidden + s.intermediate,
    down_proj: s.intermediate + s.hidden,
  }
  return s.layers * rank * targets.reduce((sum, target) => sum + inAndOut[target], 0)
}

function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}
