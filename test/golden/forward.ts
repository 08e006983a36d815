import { join } from 'node:path'
import type { Model } from '#cg/engine/types.js'
import { type EngineCase, engineCases, exact, readTensors, type Tensors, withModel } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'

type Meta = {
  model: string
  real_vocab_rows: number
  temperatures: Record<string, number>
  cases: { name: string; logits_positions: number[] }[]
  far?: { first_position: number }
}

/** Logits, log-probs and entropies of a checkpoint; all sequences of a temperature in one request, so that those with a common prefix share a trie. */
export const forward: GoldenKind<EngineCase<Meta>> = {
  name: 'forward',
  find: root => engineCases(root, 'forward'),
  async run({ root, folder, meta }) {
    const seen = measures()
    const tensors = readTensors(folder, 'data.safetensors')
    const dir = join(root, meta.model)
    await withModel(dir, meta.real_vocab_rows, async model => {
      for (const [label, temperature] of Object.entries(meta.temperatures))
        await compareScores(seen, model, tensors, meta, label, temperature)
      for (const c of meta.cases) {
        const ids = tensors.ids(`${c.name}.ids`)
        const prefixes = c.logits_positions.map(p => ids.slice(0, p + 1))
        const logits = await model.lastLogits({ sequences: prefixes.map(plain), adapter: null })
        seen.near('logits', logits, tensors.get(`${c.name}.logits_last`), 1e-4, c.name)
      }
      if (meta.far) await compareFar(seen, model, tensors, meta.far.first_position)
    })
    if (tensors.has('all_rows.ids')) await withModel(dir, undefined, model => compareAllRows(seen, model, tensors, meta.temperatures))
    return seen.result()
  },
}

type Measures = ReturnType<typeof measures>

async function compareScores(seen: Measures, model: Model, tensors: Tensors, meta: Meta, label: string, temperature: number) {
  const lists = meta.cases.map(c => tensors.ids(`${c.name}.ids`))
  const { logprobs, entropy } = await model.score({
    sequences: lists.map(ids => everyToken(ids, temperature)),
    adapter: null,
    entropy: true,
  })
  let at = 0
  meta.cases.forEach((c, i) => {
    const n = lists[i]!.length
    seen.near(`log-prob ${label}`, logprobs.subarray(at, at + n - 1), exact(tensors, `${c.name}.logp_${label}`), 1e-4, c.name)
    seen.near(`entropy ${label}`, entropy!.subarray(at, at + n), exact(tensors, `${c.name}.entropy_${label}`), 1e-4, c.name)
    at += n
  })
}

/** The engine's angles are exact: the normal bound against float64, the library's own float32 angles far out are not. */
async function compareFar(seen: Measures, model: Model, tensors: Tensors, start: number) {
  const ids = tensors.ids('far.ids')
  const { logprobs } = await model.score({
    sequences: [{ ids, start, spans: Int32Array.of(1, ids.length), temperature: 1 }],
    adapter: null,
  })
  seen.near('log-prob far', logprobs, tensors.get('far.logp_t1_f64'), 1e-4, 'far')
  seen.near('log-prob far, float32 angles', logprobs, tensors.get('far.logp_t1'), 1e-2, 'far')
}

async function compareAllRows(seen: Measures, model: Model, tensors: Tensors, temperatures: Record<string, number>) {
  const ids = tensors.ids('all_rows.ids')
  for (const [label, temperature] of Object.entries(temperatures)) {
    const { logprobs, entropy } = await model.score({ sequences: [everyToken(ids, temperature)], adapter: null, entropy: true })
    seen.near('log-prob, padding rows in', logprobs.subarray(0, ids.length - 1), tensors.get(`all_rows.logp_${label}`), 1e-4, 'all_rows')
    seen.near('entropy, padding rows in', entropy!, tensors.get(`all_rows.entropy_${label}`), 1e-4, 'all_rows')
  }
}

function plain(ids: Int32Array) {
  return { ids, spans: new Int32Array(), temperature: 1 }
}

/** One token more than there is, so that the last token's distribution has an entropy too; the added token's log-prob belongs to nothing. */
function everyToken(ids: Int32Array, temperature: number) {
  const longer = new Int32Array(ids.length + 1)
  longer.set(ids)
  return { ids: longer, spans: Int32Array.of(1, longer.length), temperature }
}
