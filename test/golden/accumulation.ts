import { loadEngine } from '#cg/engine/load.js'
import type { Aggregation } from '#cg/engine/types.js'
import { type EngineCase, engineCases, readTensors } from './cases.js'
import type { GoldenKind } from './kind.js'
import { hasResults, lossRows, policyOptions } from './losses.js'
import { measures } from './measure.js'

type Result = { variant: Aggregation; micro_losses: number[]; loss_accumulated: number; loss_whole_step_f64: number; same: boolean }
type Meta = {
  beta: number
  kl_times_ratio: boolean
  epsilon_low: number
  epsilon_high: number
  max_completion_length: number
  results: Result[]
}

/** A step in micro-batches: with the denominators of the whole step the parts sum to it, and to what TRL accumulates where TRL does the same. */
export const accumulation: GoldenKind<EngineCase<Meta>> = {
  name: 'losses/accumulation',
  find: root => engineCases(root, 'losses', meta => hasResults(meta, 'micro_losses')),
  run({ folder, meta }) {
    const seen = measures()
    const rows = lossRows(readTensors(folder, 'inputs.safetensors'))
    const expected = readTensors(folder, 'expected.safetensors')
    for (const result of meta.results) {
      const loss = policyOptions({ ...meta, variant: result.variant }, meta.max_completion_length)
      const each = rows.current.length / result.micro_losses.length
      const parts = result.micro_losses.map((_, k) => {
        const cut = <T>(list: T[]) => list.slice(k * each, (k + 1) * each)
        return loadEngine().policyLoss({
          current: cut(rows.current),
          old: cut(rows.old),
          ref: cut(rows.ref),
          mask: cut(rows.mask),
          advantages: rows.advantages.slice(k * each, (k + 1) * each),
          denominators: rows.denominators,
          loss,
        })
      })
      const total = parts.reduce((sum, part) => sum + part.loss, 0)
      const gradient = parts.flatMap(part => part.gradient.flatMap(row => [...row]))
      seen.near('loss', [total], [result.loss_whole_step_f64], 1e-6, result.variant)
      seen.near('gradient', gradient, expected.get(`${result.variant}.grad_whole_step_f64`), 1e-6, result.variant)
      if (!result.same) continue
      seen.near("loss against TRL's sum", [total], [result.loss_accumulated], 1e-6, result.variant)
      seen.near("gradient against TRL's sum", gradient, expected.get(`${result.variant}.grad_accumulated`), 1e-6, result.variant)
    }
    return seen.result()
  },
}
