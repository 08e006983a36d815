import { loadEngine } from '#cg/engine/load.js'
import { type EngineCase, engineCases, readTensors } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'

type Meta = {
  optimizer: { lr: number; betas: [number, number]; weight_decay: number; clip_global_norm: number; eps: number }
  steps: { lr: number; grad_norm: number }[]
}

/** AdamW and clipping on given gradients, all parameters as one flat span. */
export const optimizer: GoldenKind<EngineCase<Meta>> = {
  name: 'train/optimizer',
  find: root => engineCases(root, 'train', meta => !('schedule' in meta) && !('model' in meta)),
  run({ folder, meta }) {
    const seen = measures()
    const tensors = readTensors(folder, 'data.safetensors')
    const names = tensors
      .names()
      .filter(name => name.startsWith('start.'))
      .map(name => name.slice('start.'.length))
      .sort()
    const flat = (prefix: string) => names.flatMap(name => [...tensors.get(`${prefix}.${name}`)])
    const p = Float32Array.from(flat('start'))
    const m = new Float32Array(p.length)
    const v = new Float32Array(p.length)
    const o = meta.optimizer
    for (const [k, step] of meta.steps.entries()) {
      const { norm } = loadEngine().adamwStep({
        p,
        g: Float32Array.from(flat(`step${k}.grad`)),
        m,
        v,
        step: k + 1,
        lr: step.lr,
        clip: o.clip_global_norm,
        optimizer: { beta1: o.betas[0], beta2: o.betas[1], eps: o.eps, weightDecay: o.weight_decay },
      })
      const last = k === meta.steps.length - 1
      seen.relative('gradient norm', [norm], [step.grad_norm], 1e-5, `step ${k}`)
      seen.near('parameters', p, flat(last ? `step${k}.after_f64` : `step${k}.after`), 2e-6, `step ${k}`)
      if (last)
        for (const [which, got] of [
          ['m', m],
          ['v', v],
        ] as const)
          seen.near('moments', got, flat(`step${k}.${which}_f64`), 2e-6, which)
    }
    return seen.result()
  },
}
