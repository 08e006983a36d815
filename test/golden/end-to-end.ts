import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import type { Adapter, Aggregation, Model, TrainSequence } from '#cg/engine/types.js'
import { type EngineCase, engineCases, readTensors, type Tensors, withModel } from './cases.js'
import type { GoldenKind } from './kind.js'
import { hasResults, policyOptions } from './losses.js'
import { measures } from './measure.js'

type Result = { temperature: string; variant: Aggregation; kl_times_ratio: boolean; loss_f64: number }
type Meta = {
  model: string
  adapter: string
  prompt_length: number
  real_vocab_rows?: number
  temperatures: Record<string, number>
  beta: number
  epsilon_low: number
  epsilon_high: number
  max_completion_length: number
  results: Result[]
}

/** GRPO and its kin through model and adapter: the engine computes log-probs, the reference pass (adapter off), loss, coefficients and every factor's gradient. */
export const endToEnd: GoldenKind<EngineCase<Meta>> = {
  name: 'losses/end-to-end',
  find: root => engineCases(root, 'losses', meta => 'adapter' in meta && hasResults(meta, 'temperature')),
  async run({ root, folder, meta }) {
    const seen = measures()
    await withModel(join(root, meta.model), meta.real_vocab_rows, async model => {
      const adapter = await model.loadAdapter(join(folder, meta.adapter))
      for (const result of meta.results) {
        const tensors = readTensors(folder, `${result.temperature}.safetensors`)
        await compareResult(seen, model, adapter, tensors, meta, result)
      }
    })
    return seen.result()
  },
}

async function compareResult(
  seen: ReturnType<typeof measures>,
  model: Model,
  adapter: Adapter,
  tensors: Tensors,
  meta: Meta,
  result: Result,
) {
  const where = `${result.temperature} ${result.variant}.${result.kl_times_ratio ? 'klratio' : 'kl'}`
  const key = `${result.variant}.${result.kl_times_ratio ? 'klratio' : 'kl'}`
  const loss = policyOptions({ ...meta, variant: result.variant, kl_times_ratio: result.kl_times_ratio }, meta.max_completion_length)
  const rollouts = readRollouts(tensors, meta.prompt_length)
  const denominators = { rollouts: rollouts.length, tokens: rollouts.reduce((sum, r) => sum + r.mask.reduce((a, b) => a + b, 0), 0) }

  // The coefficients of the stored log-probs, then everything from the tokens on.
  const policy = loadEngine().policyLoss({
    current: rollouts.map(r => r.logp),
    old: rollouts.map(r => r.old),
    ref: rollouts.map(r => r.ref),
    mask: rollouts.map(r => r.mask),
    advantages: tensors.get('advantages'),
    loss,
    denominators,
  })
  rollouts.forEach((_, i) => {
    const expected = tensors.get(`${key}.seq${i}.coef_f64`).slice(meta.prompt_length - 1)
    seen.near('coefficients', policy.gradient[i]!, expected, 1e-6, `${where} seq${i}`)
  })
  seen.near('loss of the stored log-probs', [policy.loss], [result.loss_f64], 1e-6, where)

  const sequences = rollouts.map((r, i): TrainSequence => {
    const spans = lossSpans(r.mask, meta.prompt_length)
    return {
      ids: r.ids,
      spans,
      old: Float32Array.from([...r.old].filter((_, j) => r.mask[j])),
      advantages: new Float32Array(spans.length / 2).fill(tensors.get('advantages')[i]!),
      temperature: meta.temperatures[result.temperature]!,
    }
  })
  const trainer = model.trainer(adapter, { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 })
  const { stats, tensors: gradient } = await trainer.gradient({
    groups: [{ index: 0, sequences }],
    loss,
    denominators,
    klAdapter: null,
    maxRowsPerPass: 1 << 20,
  })
  trainer.dispose()
  seen.near('loss', [stats.loss], [result.loss_f64], 1e-6, where)
  for (const g of gradient)
    seen.relative('gradient of one tensor', g.values, tensors.get(`${key}.grad.${g.name}`), 3e-5, `${where} ${g.name}`)
}

function readRollouts(tensors: Tensors, prompt: number) {
  const rollouts = []
  for (let i = 0; tensors.has(`seq${i}.ids`); i++) {
    const ids = tensors.ids(`seq${i}.ids`)
    const n = ids.length - prompt
    const part = (name: string) => tensors.get(`seq${i}.${name}`).slice(0, n)
    rollouts.push({ ids, mask: Uint8Array.from(part('loss_mask')), logp: part('logp'), old: part('old_logp'), ref: part('ref_logp') })
  }
  return rollouts
}

/** Runs of loss tokens as pairs [begin, end) into ids. */
function lossSpans(mask: Uint8Array, prompt: number): Int32Array {
  const spans: number[] = []
  mask.forEach((on, j) => {
    if (!on) return
    if (j > 0 && mask[j - 1]) spans[spans.length - 1] = prompt + j + 1
    else spans.push(prompt + j, prompt + j + 1)
  })
  return Int32Array.from(spans)
}
