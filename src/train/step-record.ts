import type { StepStats } from '../engine/types.js'
import type { Step } from '../record/schema.js'
import type { Figure } from './best.js'

export type StepOutcome = {
  step: number
  stats: StepStats
  lr: number
  digest: string
  /** What the method adds: reward, turns … */
  facts: object
  /** Were there log-probs of a sampler to compare with? */
  compared: boolean
  figure: Figure | undefined
  timing: { train_s: number; wait_s: number; eval_s?: number }
}

/**
 * The `step` record of a finished optimiser step; it made version step + 1.
 *
 * A skipped step (NaN or infinity) has null where there is no number. Everything measured by a clock stands under `timing`.
 */
export function stepRecord({ step, stats, lr, digest, facts, compared, figure, timing }: StepOutcome): Step {
  const { mismatch } = stats
  return {
    kind: 'step',
    v: 1,
    step,
    version: step + 1,
    loss: finite(stats.loss),
    ...facts,
    kl: finite(stats.kl),
    entropy: finite(stats.entropy),
    clip: finite(stats.clipFraction),
    grad_norm: finite(stats.gradNorm),
    lr,
    tokens: stats.tokens,
    unique_tokens: stats.uniqueTokens,
    loss_tokens: stats.lossTokens,
    ...(compared
      ? { mismatch: { kl: finite(mismatch.kl), mult_prob_error: finite(mismatch.multProbError), max: finite(mismatch.max) } }
      : {}),
    ...(stats.skipped ? { skipped: true } : {}),
    ...(figure ? { eval: figure } : {}),
    digest,
    timing: { ...timing, tokens_per_s: timing.train_s > 0 ? Math.round(stats.tokens / timing.train_s) : null },
  } as Step
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

/** A few words for the progress line. The loss of an on-policy step is about 0 by construction, so the reward comes first. */
export function progressWords(record: Step): string {
  const words: string[] = []
  const add = (name: string, value: unknown, digits = 3) => {
    if (typeof value === 'number')
      words.push(`${name} ${Math.abs(value) >= 1e-3 || value === 0 ? value.toFixed(digits) : value.toExponential(1)}`)
  }
  add('reward', record.reward)
  add('loss', record.loss)
  add('kl', record.kl === 0 ? undefined : record.kl)
  add('entropy', record.entropy)
  add('grad', record.grad_norm)
  add('calls/turn', record.calls_per_turn, 2)
  const figure = record.eval as Figure | undefined
  if (figure) add(`eval ${figure.name}`, figure.value)
  return words.join(' · ')
}
