import type { Bench } from './bench.js'
import { cpuSeconds } from './cpu-seconds.js'
import { compared } from './figure.js'
import { interleave } from './interleave.js'
import { agree, torchStep, withWorkload } from './s576.js'

/** Log-probs of stored rollouts against PyTorch that computes the shared prompt once, too, in CPU seconds of one thread; the log-probs are compared. */
export const forwardLogprobs: Bench = async function* (say) {
  yield await withWorkload(say, async ({ model, adapter, peer, sequences }) => {
    let logprobs: ArrayLike<number> = []
    const seconds = await interleave(
      {
        ours: () =>
          cpuSeconds(async () => {
            logprobs = (await model.score({ sequences, adapter })).logprobs
          }),
        peer: async () => {
          const answer = await torchStep(peer, 'shared', false)
          agree('log-probs', logprobs, answer.logprobs, 1e-3)
          return answer.seconds
        },
      },
      say,
    )
    return compared({
      bench: 'forward-logprobs',
      what: 'fp32',
      unit: 's',
      ours: seconds.ours,
      peer: seconds.peer,
      peerName: `${peer.name}, shared prefix by hand, no gradients`,
      better: 'less',
      target: 1.4,
    })
  })
}
