import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import { type EngineCase, engineCases, readTensors } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'

/** Rotary tables: exact to the rounding of fp32, and as far from the library's float32 angles as those are from the truth. */
export const rope: GoldenKind<EngineCase<{ model: string }>> = {
  name: 'rope',
  find: root => engineCases(root, 'rope'),
  run({ root, folder, meta }) {
    const seen = measures()
    const tensors = readTensors(folder, 'data.safetensors')
    const rows = loadEngine().ropeRows(join(root, meta.model), tensors.ids('positions'))
    seen.relative('inverse frequency', rows.inverse, tensors.get('inv_freq_f64'), 1e-14)
    for (const name of ['cos', 'sin'] as const) {
      seen.near('cos, sin', rows[name], tensors.get(`${name}_f64`), 6e-8, name)
      seen.near('cos, sin against float32 angles', rows[name], tensors.get(name), 5e-3, name)
    }
    return seen.result()
  },
}
