import type { LossOptions, StepStats } from '#cg/engine/types.js'
import type { Bench } from './bench.js'
import { cpuSeconds } from './cpu-seconds.js'
import { compared } from './figure.js'
import { interleave } from './interleave.js'
import { agree, openWorkload, torchStep } from './s576.js'

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
    const { model, adapter, peer, sequences, close } = await openWorkload(say)
    const trainer = model.trainer(adapter, { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 })
    try {
      const rows = sequences.length * sequences[0]!.ids.length
      const lossTokens = sequences.reduce((sum, { spans }) => sum + spans[1]! - spans[0]!, 0)
      const denominators = { rollouts: sequences.length, tokens: lossTokens }
      const request = { groups: [{ index: 0, sequences }], loss, denominators, maxRowsPerPass: rows }
      // a rate of 0: every step is the same step
      const step = () => trainer.train({ ...request, lr: 0, clip: 1 })
      let ours: StepStats | undefined
      let norm = 0
      const seconds = await interleave(
        {
          ours: () =>
            cpuSeconds(async () => {
              ours = await step()
            }),
          peer: async () => {
            const answer = await torchStep(peer, layout, true)
            norm = answer.grad_norm!
            agree('norm of the gradient, relative', [ours!.gradNorm / norm], [1], 1e-3)
            return answer.seconds
          },
        },
        say,
      )
      yield compared({
        bench: `lora-step-${layout}`,
        what: 'fp32',
        unit: 's',
        ours: seconds.ours,
        peer: seconds.peer,
        peerName: `${peer.hello.name}, ${layout === 'batched' ? 'batched' : 'shared prefix by hand'}`,
        better: 'less',
        target: targets[layout],
      })
    } finally {
      trainer.dispose()
      await close()
    }
  }
}
