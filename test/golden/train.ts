import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import type { Trainer } from '#cg/engine/types.js'
import { type EngineCase, engineCases, readTensors, type Tensors, withModel } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'
import { weightedRequest } from './weighted.js'

type Meta = {
  model: string
  real_vocab_rows: number
  optimizer: { lr: number; betas: [number, number]; eps: number; weight_decay: number; clip_global_norm: number }
  schedule: { name: string; warmup_steps: number; total_steps: number }
  steps: { lr: number; loss: number; loss_f64: number; grad_norm_f64: number }[]
}

/** AdamW steps on a model: schedule, loss, gradient norm, the adapter after every step, the moments at the end. */
export const train: GoldenKind<EngineCase<Meta>> = {
  name: 'train',
  find: root => engineCases(root, 'train', meta => 'schedule' in meta),
  async run({ root, folder, meta }) {
    const seen = measures()
    const tensors = readTensors(folder, 'data.safetensors')
    const { betas, eps, weight_decay, lr, clip_global_norm } = meta.optimizer
    const schedule = meta.schedule.name.includes('cosine') ? 'cosine' : meta.schedule.name.includes('linear') ? 'linear' : 'constant'
    const scratch = mkdtempSync(join(tmpdir(), 'cg-golden-'))
    await withModel(join(root, meta.model), meta.real_vocab_rows, async model => {
      const adapter = await model.loadAdapter(join(folder, 'adapter'))
      const trainer = model.trainer(adapter, { beta1: betas[0], beta2: betas[1], eps, weightDecay: weight_decay })
      for (const [k, step] of meta.steps.entries()) {
        const rate = loadEngine().learningRate(schedule, lr, k, meta.schedule.warmup_steps, meta.schedule.total_steps)
        seen.near('learning rate', [rate], [step.lr], 1e-15, `step ${k}`)
        const stats = await trainer.train({ ...weightedRequest(batch(tensors, k), 1), lr: rate, clip: clip_global_norm })
        seen.near('loss', [stats.loss], [step.loss_f64], 3e-5, `step ${k}`)
        seen.relative('gradient norm', [stats.gradNorm], [step.grad_norm_f64], 1e-5, `step ${k}`)
        await compareAdapter(seen, trainer, tensors, k, scratch)
      }
      await compareMoments(seen, trainer, tensors, meta.steps.length - 1, scratch)
    }).finally(() => rmSync(scratch, { recursive: true }))
    return seen.result()
  },
}

function batch(tensors: Tensors, k: number) {
  const sequences: { ids: Int32Array; coef: Float64Array }[] = []
  for (let i = 0; tensors.has(`step${k}.seq${i}.ids`); i++)
    sequences.push({ ids: tensors.ids(`step${k}.seq${i}.ids`), coef: tensors.get(`step${k}.seq${i}.coef`) })
  return sequences
}

async function compareAdapter(seen: ReturnType<typeof measures>, trainer: Trainer, tensors: Tensors, k: number, scratch: string) {
  await trainer.trained.save(scratch)
  const after = readTensors(scratch, 'adapter_model.safetensors')
  let squares = 0
  let count = 0
  for (const name of after.names()) {
    const got = after.get(name)
    const expected = tensors.get(tensors.has(`step${k}.after_f64.${name}`) ? `step${k}.after_f64.${name}` : `step${k}.after.${name}`)
    seen.near('adapter, largest', got, expected, 4e-4, `step ${k} ${name}`)
    got.forEach((x, i) => {
      squares += (x - expected[i]!) ** 2
    })
    count += got.length
  }
  seen.add('adapter, root mean square', Math.sqrt(squares / count), 3e-6, `step ${k}`)
}

async function compareMoments(seen: ReturnType<typeof measures>, trainer: Trainer, tensors: Tensors, last: number, scratch: string) {
  const file = join(scratch, 'state.safetensors')
  await trainer.saveState(file)
  const state = readTensors(file)
  for (const name of state.names()) seen.relative('moments', state.get(name), tensors.get(`step${last}.${name}`), 1e-4, name)
}
