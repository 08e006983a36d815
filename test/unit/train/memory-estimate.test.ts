import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import type { LoraTarget } from '#cg/engine/types.js'
import { defaultRowsPerPass, estimateMemory, loraParameters, memoryLines, passBytes } from '#cg/train/memory-estimate.js'
import { linearParameters, parameters, readModelShape } from '#cg/train/model-shape.js'
import { model, scratchDir } from './in-process.js'

const all: LoraTarget[] = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
/** Qwen3-4B: 36 layers, hidden 2560, 32/8 heads of 128, intermediate 9728, vocabulary 151936, tied. */
const qwen3: Parameters<typeof parameters>[0] = {
  layers: 36,
  hidden: 2560,
  heads: 32,
  kvHeads: 8,
  headDim: 128,
  intermediate: 9728,
  vocab: 151_936,
  tied: true,
  maxPositions: 40_960,
  qkNorm: true,
}

t.test('parameters of a published model', async t => {
  t.equal(parameters(qwen3), 4_022_468_096)
  t.equal(loraParameters(qwen3, { rank: 16, alpha: 16, targets: all }), 33_030_144)
})

t.test('what the engine says of a model that it has loaded', async t => {
  const loaded = await loadEngine().loadModel(model, { backend: 'reference', threads: 1 })
  const shape = readModelShape(model)
  t.match(loaded.info, {
    layers: shape.layers,
    hidden: shape.hidden,
    heads: shape.heads,
    headDim: shape.headDim,
    vocab: shape.vocab,
    tied: shape.tied,
  })
  t.equal(loaded.info.parameters, parameters(shape))
  const adapter = await loaded.newAdapter({ rank: 8, alpha: 8, targets: ['q_proj', 'down_proj'] }, 0n)
  t.equal(adapter.parameters, loraParameters(shape, { rank: 8, alpha: 8, targets: ['q_proj', 'down_proj'] }))
  loaded.dispose()
})

t.test('an estimate adds up, and grows with rows and groups', async t => {
  const lora = { rank: 16, alpha: 16, targets: all }
  const one = estimateMemory(qwen3, lora, 1000, 1, Number.POSITIVE_INFINITY)
  t.equal(one.total, one.weights + one.trained + one.activations)
  t.equal(one.weights, 4 * (parameters(qwen3) + linearParameters(qwen3) + 151_936 * 2560))
  t.equal(one.trained, 4 * 33_030_144 * 4, 'factors, one gradient, m and v')
  t.equal(estimateMemory(qwen3, lora, 1000, 8, Number.POSITIVE_INFINITY).trained, 4 * 33_030_144 * 7, 'four partial sums of eight groups')
  t.match(memoryLines(one, 1000).join('\n'), /frozen weights, fp32, also transposed for the backward pass: 30 GiB/)
})

t.test('what does not fit is computed again: the first tier that fits is taken', async t => {
  const lora = { rank: 16, alpha: 16, targets: all }
  const kept = (budget: number) => estimateMemory(qwen3, lora, 40_000, 1, budget)
  const sizes = (['everything', 'all-but-mlp', 'layer-inputs'] as const).map(keep => passBytes(qwen3, lora, 40_000, 40_000, keep))
  t.ok(sizes[0]! > sizes[1]! && sizes[1]! > sizes[2]!)
  t.equal(kept(sizes[0]!).keep, 'everything')
  t.equal(kept(sizes[0]! - 1).keep, 'all-but-mlp')
  t.equal(kept(sizes[1]! - 1).keep, 'layer-inputs')
  t.equal(kept(1).keep, 'layer-inputs', 'there is nothing below')
  t.match(memoryLines(kept(1), 40_000).join('\n'), /a pass of up to 40000 token rows: .*, with layers computed again from their inputs/)
})

t.test('40,000 tokens of a 135 M model fit 16 GiB', async t => {
  const s576 = { ...qwen3, layers: 30, hidden: 576, heads: 9, kvHeads: 3, headDim: 64, intermediate: 1536, vocab: 49_152 }
  const estimate = estimateMemory(s576, { rank: 16, alpha: 32, targets: all }, 40_000, 8, 12 * 2 ** 30)
  t.equal(estimate.keep, 'layer-inputs')
  t.ok(estimate.total < 16 * 2 ** 30, `${estimate.total}`)
})

t.test('rows of one pass', async t => {
  const lora = { rank: 16, alpha: 16, targets: all }
  const rows = defaultRowsPerPass(readModelShape(model), lora)
  t.equal(rows % 64, 0)
  t.ok(estimateMemory(readModelShape(model), lora, rows, 1, 0).activations <= 2 ** 31)
  t.equal(defaultRowsPerPass(qwen3, lora), 1024, 'a big model: at least this many')
})

t.test('a directory that is no checkpoint', async t => {
  const dir = scratchDir(t)
  t.throws(() => readModelShape(dir), {
    code: 'E_CHECKPOINT',
    message: new RegExp(`${join(dir, 'config.json')}.*name a Hugging Face checkpoint`),
  })
})
