import type { LossOptions } from '#cg/engine/types.js'
import { spanTokens } from '#cg/train/denominators.js'
import type { Bench } from './bench.js'
import { cpuSeconds } from './cpu-seconds.js'
import { compared } from './figure.js'
import { interleave } from './interleave.js'
import { agree, torchStep, withWorkload } from './s576.js'

/** Loss and gradient are at ratio 1, where they are those of a weighted mean of log-probs. */
const loss: LossOptions = {
  kind: 'policy',
  aggregation: 'bnpo',
  epsilonLow: 0.2,
  epsilonHigh: 0.2,
  cispoCap: 5,
  kl: 0,
  klBiasCorrection: false,
  maxCompletionLength: 64,
}
const targets = { batched: 8, shared: 2 }

/**
 * A LoRA training step against PyTorch, in CPU seconds of one thread: forward and backward on both sides, on ours clipping and AdamW too.
 *
 * `batched` is how trainers lay rollouts out, each with its prompt; `shared` computes the prompt once, written by hand. Before anything is timed, the gradients'
 * norms are compared.
 */
export function loraStep(layout: 'batched' | 'shared'): Bench {
  return async function* (say) {
    yield await withWorkload(say, async ({ model, adapter, peer, sequences }) => {
      const trainer = model.trainer(adapter, { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 })
      const rows = sequences.reduce((sum, { ids }) => sum + ids.length, 0)
      const lossTokens = sequences.reduce((sum, { spans }) => sum + spanTokens(spans), 0)
      const request = {
        groups: [{ index: 0, sequences }],
        loss,
        denominators: { rollouts: sequences.length, tokens: lossTokens },
        maxRowsPerPass: rows,
        // every step is the same step
        lr: 0,
        clip: 1,
      }
      let gradNorm = Number.NaN
      const seconds = await interleave(
        {
          ours: () =>
            cpuSeconds(async () => {
              gradNorm = (await trainer.train(request)).gradNorm
            }),
          peer: async () => {
            const answer = await torchStep(peer, layout, true)
            agree('norm of the gradient, in that of the peer', [gradNorm / answer.grad_norm!], [1], 1e-3)
            return answer.seconds
          },
        },
        say,
      )
      trainer.dispose()
      return compared({
        bench: `lora-step-${layout}`,
        what: 'fp32',
        unit: 's',
        ours: seconds.ours,
        peer: seconds.peer,
        peerName: `${peer.name}, ${layout === 'batched' ? 'batched' : 'shared prefix by hand'}`,
        better: 'less',
        target: targets[layout],
      })
    })
  }
}
