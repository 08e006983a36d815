import type { Bench } from './bench.js'
import { demoModel, demoRollouts } from './demo-rollouts.js'
import { single } from './figure.js'
import { scoreAgain } from './score-again.js'

/** |log-prob of the trainer's pass − log-prob that the sampler recorded| over a stored step of the demo: 0, to the last bit. */
export const samplerMismatch: Bench = async function* (say) {
  const { file, adapter } = await demoRollouts(say)
  const { rollouts, tokens, largest } = await scoreAgain(file, { model: demoModel, adapter: adapter ?? undefined, threads: 1 })
  say(`${rollouts} rollouts, ${tokens} tokens`)
  yield single({ bench: 'sampler-mismatch', what: 'largest |sampler − trainer|', unit: 'nat', ours: largest, most: 0 })
}
