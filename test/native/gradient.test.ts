import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import type { Aggregation, LossOptions, Model, StepRequest } from '#cg/engine/types.js'
import { adam, grpo, load, numbers, rolloutGroups, scratch, stepOf, targets } from './setup.js'

const start = 'fixtures/golden/engine/losses/end-to-end/adapter'
type Factor = { name: string; shape: number[]; values: Float32Array }

/** A step's loss with `size` times `direction` added to the adapter. */
function lossAt(model: Model, factors: Factor[], direction: Map<string, Float32Array>, size: number, request: StepRequest) {
  return scratch(async dir => {
    cpSync(start, dir, { recursive: true })
    const moved = factors.map(f => ({ ...f, values: f.values.map((x, i) => x + size * (direction.get(f.name)?.[i] ?? 0)) }))
    loadEngine().writeSafetensors(join(dir, 'adapter_model.safetensors'), moved)
    const trainer = model.trainer(await model.loadAdapter(dir), adam)
    return (await trainer.evaluate(request)).loss
  })
}

/** Compares the gradient with the central difference of the loss along a direction that it is not small in. */
async function check(t: Tap, model: Model, request: StepRequest, which: RegExp, what: string) {
  const factors = loadEngine()
    .readSafetensors(join(start, 'adapter_model.safetensors'))
    .tensors.map(f => ({ ...f, values: Float32Array.from(f.values) }))
  const { tensors } = await model.trainer(await model.loadAdapter(start), adam).gradient(request)
  const chosen = tensors.filter(g => which.test(g.name))
  const norm = Math.sqrt(chosen.reduce((sum, g) => sum + g.values.reduce((s, x) => s + x * x, 0), 0))
  // Half along the gradient, half at random: a wrong sign or a wrong factor shows, and so does a wrong element.
  const next = numbers(9)
  const direction = new Map(chosen.map(g => [g.name, g.values.map(x => x / norm + (next() - 0.5) * 0.05)]))
  const predicted = chosen.reduce((sum, g) => sum + g.values.reduce((s, x, i) => s + x * direction.get(g.name)![i]!, 0), 0)
  const size = 4e-3
  const measured =
    ((await lossAt(model, factors, direction, size, request)) - (await lossAt(model, factors, direction, -size, request))) / (2 * size)
  t.ok(Math.abs(measured - predicted) < 4e-3 * Math.abs(predicted), `${what}: ${predicted} predicted, ${measured} measured`)
}
type Tap = { ok(value: boolean, message: string): void }

t.test('every factor of a whole model against finite differences', async t => {
  const model = await load()
  const groups = rolloutGroups(2, 4)
  const request = stepOf(groups, { kind: 'weighted' })
  for (const target of targets)
    for (const factor of ['lora_A', 'lora_B'])
      await check(t, model, request, new RegExp(`layers\\.0\\..*${target}\\.${factor}`), `${target} ${factor}`)
  await check(t, model, request, /layers\.1/, 'the last layer')
})

for (const aggregation of ['grpo', 'dapo', 'bnpo', 'dr_grpo', 'gspo'] as Aggregation[])
  t.test(`${aggregation} with KL`, async t => {
    const model = await load()
    const groups = rolloutGroups(2, 4)
    // Old log-probs a little off, so that ratios are not 1; inside the clip range, where the loss is smooth.
    for (const group of groups)
      for (const s of group.sequences) {
        const next = numbers(s.ids.length)
        const { logprobs } = await model.score({ sequences: [s], adapter: await model.loadAdapter(start) })
        s.old = logprobs.map(x => x + (next() - 0.5) * 0.1)
      }
    for (const klBiasCorrection of [false, true]) {
      const loss = { ...grpo, aggregation, kl: 0.5, klBiasCorrection, epsilonLow: 0.5, epsilonHigh: 0.5 } as LossOptions
      await check(t, model, stepOf(groups, loss), /./, `all factors, ρ ${klBiasCorrection ? 'in' : 'not in'} the KL term`)
    }
  })
