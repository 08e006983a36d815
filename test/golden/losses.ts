import { loadEngine } from '#cg/engine/load.js'
import type { Aggregation, LossOptions } from '#cg/engine/types.js'
import { type EngineCase, engineCases, readTensors, type Tensors } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'

export type PolicyOptions = Extract<LossOptions, { kind: 'policy' }>
type Setting = { variant: Aggregation; beta: number; kl_times_ratio: boolean; epsilon_low: number; epsilon_high: number }
type Result = Setting & { key: string; loss_f64: number }
type Meta = { max_completion_length: number; results: Result[] }

/** Policy losses and their derivatives by every log-prob, for all aggregations, KL terms and clips. */
export const losses: GoldenKind<EngineCase<Meta>> = {
  name: 'losses',
  find: root => engineCases(root, 'losses', meta => hasResults(meta, 'key')),
  run({ folder, meta }) {
    const seen = measures()
    const rows = lossRows(readTensors(folder, 'inputs.safetensors'))
    const expected = readTensors(folder, 'expected.safetensors')
    for (const result of meta.results) {
      const { loss, gradient } = loadEngine().policyLoss({ ...rows, loss: policyOptions(result, meta.max_completion_length) })
      const want = expected.get(`${result.key}.grad_f64`)
      seen.near('loss', [loss], [result.loss_f64], 1e-6, result.key)
      seen.near(
        'gradient',
        gradient.flatMap(row => [...row]),
        want,
        1e-6,
        result.key,
      )
    }
    return seen.result()
  },
}

export function hasResults(meta: Record<string, unknown>, field: string): boolean {
  return Array.isArray(meta.results) && meta.results.length > 0 && field in (meta.results[0] as object)
}

/** For cispo the reference's epsilon_high is the cap of the ratio itself. */
export function policyOptions(s: Setting, maxCompletionLength: number): PolicyOptions {
  return {
    kind: 'policy',
    aggregation: s.variant,
    epsilonLow: s.epsilon_low,
    epsilonHigh: s.epsilon_high,
    cispoCap: s.epsilon_high,
    kl: s.beta,
    klBiasCorrection: s.kl_times_ratio,
    maxCompletionLength,
  }
}

/** Inputs of a case as rows, with the denominators of the whole step. */
export function lossRows(inputs: Tensors) {
  const [count = 0, length = 0] = inputs.shape('logps')
  const rows = (name: string) => Array.from({ length: count }, (_, i) => inputs.get(name).slice(i * length, (i + 1) * length))
  const mask = rows('mask').map(row => Uint8Array.from(row))
  return {
    current: rows('logps'),
    old: rows(inputs.has('old_logps') ? 'old_logps' : 'logps'),
    ref: rows('ref_logps'),
    mask,
    advantages: inputs.get('advantages'),
    denominators: { rollouts: count, tokens: mask.reduce((sum, row) => sum + row.reduce((a, b) => a + b, 0), 0) },
  }
}
