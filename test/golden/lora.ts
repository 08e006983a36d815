import { join } from 'node:path'
import type { Adapter, Model } from '#cg/engine/types.js'
import { type EngineCase, engineCases, exact, readTensors, type Tensors, withModel } from './cases.js'
import type { GoldenKind } from './kind.js'
import { largestDifference, measures } from './measure.js'
import { weightedRequest } from './weighted.js'

type LoraCase = { temperature: number; sequences: number; loss_f64: number; largest_gradient_element_f64: number }
type Meta = { model: string; adapter?: string; real_vocab_rows: number; cases: Record<string, LoraCase> }

/** L = Σ c · logp with a PEFT adapter: log-probs, L, and the gradient of every A and B. */
export const lora: GoldenKind<EngineCase<Meta>> = {
  name: 'lora',
  find: root => engineCases(root, 'lora'),
  async run({ root, folder, meta }) {
    const seen = measures()
    const tensors = readTensors(folder, 'data.safetensors')
    await withModel(join(root, meta.model), meta.real_vocab_rows, async model => {
      const adapter = await model.loadAdapter(join(folder, 'adapter'))
      for (const [name, c] of Object.entries(meta.cases)) await compareCase(seen, model, adapter, tensors, name, c)
      if (tensors.has('single.logits_last')) {
        const ids = tensors.ids('single.seq0.ids')
        const prefixes = [2, 1, 0].map(cut => ({ ids: ids.slice(0, ids.length - cut), spans: new Int32Array(), temperature: 1 }))
        seen.near('logits', await model.lastLogits({ sequences: prefixes, adapter }), exact(tensors, 'single.logits_last'), 1e-4)
      }
    })
    return seen.result()
  },
}

async function compareCase(seen: ReturnType<typeof measures>, model: Model, adapter: Adapter, tensors: Tensors, name: string, c: LoraCase) {
  const sequences = Array.from({ length: c.sequences }, (_, i) => ({
    ids: tensors.ids(`${name}.seq${i}.ids`),
    coef: tensors.get(`${name}.seq${i}.coef`),
  }))
  const { logprobs } = await model.score({
    sequences: sequences.map(s => ({ ids: s.ids, spans: Int32Array.of(1, s.ids.length), temperature: c.temperature })),
    adapter,
  })
  let at = 0
  let loss = 0
  sequences.forEach(({ coef }, i) => {
    const own = logprobs.subarray(at, at + coef.length)
    seen.near('log-prob', own, exact(tensors, `${name}.seq${i}.logp`), 1e-4, `${name}.seq${i}`)
    own.forEach((logp, j) => {
      loss += coef[j]! * logp
    })
    at += coef.length
  })
  seen.near('L', [loss], [c.loss_f64], 2e-5, name)

  const trainer = model.trainer(adapter, { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 })
  const { stats, tensors: gradient } = await trainer.gradient(weightedRequest(sequences, c.temperature))
  seen.near("the step's loss", [stats.loss], [c.loss_f64], 2e-5, name)
  seen.same(`${name}: factors`, gradient.map(g => g.name).sort(), factorNames(tensors, `${name}.grad.`))
  for (const g of gradient) {
    const expected = exactGradient(tensors, name, g.name)
    seen.relative('gradient of one tensor', g.values, expected, 3e-5, `${name} ${g.name}`)
    seen.add('gradient, largest element', largestDifference(g.values, expected) / c.largest_gradient_element_f64, 3e-5, `${name} ${g.name}`)
  }
  trainer.dispose()
}

function exactGradient(tensors: Tensors, name: string, factor: string): Float64Array {
  return tensors.get(tensors.has(`${name}.grad_f64.${factor}`) ? `${name}.grad_f64.${factor}` : `${name}.grad.${factor}`)
}

function factorNames(tensors: Tensors, prefix: string): string[] {
  return tensors
    .names()
    .filter(name => name.startsWith(prefix))
    .map(name => name.slice(prefix.length))
    .sort()
}
