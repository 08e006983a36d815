import { loadEngine } from '#cg/engine/load.js'
import type { SamplingParams } from '#cg/engine/types.js'
import { type EngineCase, engineCases, readTensors } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'

type Parameters = { temperature?: number; top_k?: number; top_p?: number; min_p?: number; repetition_penalty?: number }
type Meta = {
  parameters: Record<string, Parameters>
  cases: { key: string; kept: number; kept_by_definition: number; same_set_by_definition: boolean }[]
}

/** Kept tokens and probabilities after penalty, temperature and cuts. Where the library's unstable sort chose among equal tokens, the number kept and the sorted probabilities count. */
export const sampling: GoldenKind<EngineCase<Meta>> = {
  name: 'sampling',
  find: root => engineCases(root, 'sampling'),
  run({ folder, meta }) {
    const seen = measures()
    const tensors = readTensors(folder, 'data.safetensors')
    for (const c of meta.cases) {
      const [, base = '', label = ''] = /^(.*)\.([^.]+)$/.exec(c.key) ?? []
      const got = loadEngine().sampleDistribution(
        Float32Array.from(tensors.get(`${base}.logits`)),
        samplingParams(meta.parameters[label]!),
        tensors.ids(`${base}.previous`),
      )
      const probabilities = tensors.get(`${c.key}.probs`)
      const kept = tensors.get(`${c.key}.kept`)
      if (c.same_set_by_definition) {
        seen.near('probability', got, probabilities, 2e-6, c.key)
        // A kept probability may have underflowed to 0 on either side.
        kept.forEach((on, id) => {
          if ((on && probabilities[id]! > 1e-30 && got[id] === 0) || (!on && got[id] !== 0))
            seen.fail(`${c.key}: id ${id} is ${on ? 'cut' : 'kept'}`)
        })
      } else {
        // Equal logits that fill top_p to the last digit: rounding decides whether one more stays, and the library and its definition differ.
        const count = got.filter(p => p > 0).length
        if (count !== c.kept && count !== c.kept_by_definition) seen.fail(`${c.key}: ${count} kept, expected ${c.kept_by_definition}`)
        if (count === c.kept) seen.near('probability, sorted', got.toSorted(), probabilities.toSorted(), 2e-6, c.key)
      }
    }
    return seen.result()
  },
}

function samplingParams(p: Parameters): SamplingParams {
  return {
    temperature: p.temperature ?? 1,
    topK: p.top_k ?? 0,
    topP: p.top_p ?? 1,
    minP: p.min_p ?? 0,
    repetitionPenalty: p.repetition_penalty ?? 1,
  }
}
