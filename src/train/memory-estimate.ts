import type { Keep, LoraConfig, LoraTarget } from '../engine/types.js'
import { linearParameters, type ModelShape, parameters } from './model-shape.js'

const float = 4

/** Memory of a pass that the default row limit keeps within. */
const passBudget = 2 * 2 ** 30

/** In order: the first that fits is taken. */
const tiers: Keep[] = ['everything', 'all-but-mlp', 'layer-inputs']

export type MemoryEstimate = {
  /** Bytes. The weights that the engine computes with, widened to fp32, and matrices once more, transposed for the backward pass. */
  weights: number
  /** What is trained (LoRA factors, or fp32 copies of all weights), its gradient's partial sums, Adam's m and v. */
  trained: number
  /** What forward keeps and backward needs beside it, for one pass of `rows` rows, logits included. */
  activations: number
  /** What is kept of them between the two. */
  keep: Keep
  total: number
  trainedParameters: number
  whole: boolean
}

/** Logits that the head computes at once, in rows: 64 of a large vocabulary, more of a small one. */
const headRows = (rows: number, vocab: number) => Math.min(rows, Math.max(64, Math.floor(2 ** 19 / vocab)))

/**
 * What one training step holds in memory, in bytes, all in fp32. The engine plans the same sum before it runs a pass, and keeps as much as fits `budget`.
 *
 * @param lora undefined: all weights are trained
 * @param rows token rows of one pass; every one may carry loss
 * @param groups of a step: their gradients are summed in a binary tree, log2 G + 1 partial sums alive
 * @param budget bytes of a pass's activations
 */
export function estimateMemory(
  shape: ModelShape,
  lora: LoraConfig | undefined,
  rows: number,
  groups: number,
  budget: number,
): MemoryEstimate {
  const trainedParameters = lora ? loraParameters(shape, lora) : parameters(shape)
  const partialSums = Math.ceil(Math.log2(Math.max(1, groups))) + 1
  const weights = float * (parameters(shape) + linearParameters(shape) + shape.vocab * shape.hidden)
  const trained = float * trainedParameters * (3 + partialSums)
  const keep = tiers.find(tier => passBytes(shape, lora, rows, rows, tier) <= budget) ?? 'layer-inputs'
  const activations = passBytes(shape, lora, rows, rows, keep)
  return { weights, trained, activations, keep, total: weights + trained + activations, trainedParameters, whole: !lora }
}

/** Bytes of one pass of `rows` token rows, `lossRows` of which predict loss tokens. */
export function passBytes(shape: ModelShape, lora: LoraConfig | undefined, rows: number, lossRows: number, keep: Keep): number {
  const logits = 2 * headRows(lossRows, shape.vocab) * shape.vocab
  return float * (rows * rowFloats(shape, lora, keep) + lossRows * (4 * shape.hidden + 7) + logits)
}

/** Rows of one pass when nothing is said: what fits 2 GiB, in multiples of 64, at least a whole context of the model or 1,024. */
export function defaultRowsPerPass(shape: ModelShape, lora: LoraConfig | undefined): number {
  const fitting = Math.floor(passBudget / (float * rowFloats(shape, lora, 'everything')) / 64) * 64
  return Math.max(fitting, Math.min(shape.maxPositions, 1024))
}

/** The estimate in words, for --dry-run. */
export function memoryLines(
  { weights, trained, activations, keep, total, trainedParameters, whole }: MemoryEstimate,
  rows: number,
): string[] {
  return [
    `memory: at most about ${sizeText(total)}`,
    `  ${whole ? '' : 'frozen '}weights, fp32, also transposed for the backward pass: ${sizeText(weights)}`,
    `  ${whole ? 'fp32 values' : 'adapter'} of ${trainedParameters.toLocaleString('en')} parameters, with gradients and Adam's m and v: ${sizeText(trained)}`,
    `  a pass of up to ${rows} token rows: ${sizeText(activations)}, ${kept[keep]}`,
  ]
}

const kept: Record<Keep, string> = {
  everything: 'with everything kept for the backward pass',
  'all-but-mlp': 'with the MLP computed again in the backward pass',
  'layer-inputs': 'with layers computed again from their inputs in the backward pass',
}

/** Values that a token row keeps: per layer what backward reads, once what is made again in every layer, what backward writes, and the batch's lists. */
function rowFloats(s: ModelShape, lora: LoraConfig | undefined, keep: Keep): number {
  const q = s.heads * s.headDim
  const kv = s.kvHeads * s.headDim
  const rank = lora?.rank ?? 0
  const norms = s.qkNorm ? q + kv + s.heads + s.kvHeads : 0
  const input = s.hidden
  const attention = s.hidden + 2 + 2 * q + 2 * kv + s.heads + norms + (lora?.targets.length ?? 0) * rank
  const mlp = 2 * s.intermediate
  const layers = {
    everything: s.layers * (input + attention + mlp),
    'all-but-mlp': s.layers * (input + attention) + mlp,
    'layer-inputs': s.layers * (input + rank) + attention + mlp,
  }[keep]
  const forward = 2 * s.hidden + s.intermediate
  const backward = 2 * s.hidden + 2 * q + 2 * kv + (s.qkNorm ? q + kv : 0) + 3 * s.intermediate + (lora ? rank : 1) + s.heads
  const lists = 6
  return layers + forward + backward + lists
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

/** Bytes in words: 1.5 GiB. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}
