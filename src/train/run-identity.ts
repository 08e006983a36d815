import { canonical, sha256 } from '../record/canonical.js'
import { UsageError } from '../record/fault.js'
import type { RunFile } from '../record/run-directory.js'
import { needsTotal } from './schedule.js'
import { loraConfig, type Method, type PolicyOptions, type WeightedOptions } from './settings.js'

/** Facts behind the options, digests instead of places. */
export type RunFacts = { initAdapterSha256: string | null; logprobKind: string; maxRowsPerPass: number }

/**
 * The options that decide a run's result, by their flags (without dashes). `steps` is among them only where the learning rate depends on it, `threads`, places
 * and whatever is only kept or shown never.
 */
export function decidingOptions(
  method: Method,
  options: Partial<PolicyOptions & WeightedOptions>,
  facts: RunFacts,
): Record<string, unknown> {
  const o = options as PolicyOptions & WeightedOptions
  const { rank, alpha, targets } = loraConfig(o)
  const common = {
    method,
    ...(o.full ? { full: true, init: o.init ?? null, 'save-dtype': o.saveDtype ?? null } : { 'init-adapter': facts.initAdapterSha256 }),
    'logprob-kind': facts.logprobKind,
    // the adapter that training starts from brings its own
    ...(facts.initAdapterSha256 === null && !o.full ? { 'lora-rank': rank, 'lora-alpha': alpha, 'lora-targets': targets } : {}),
    lr: o.lr,
    schedule: o.schedule,
    warmup: o.warmup,
    beta1: o.beta1,
    beta2: o.beta2,
    'adam-eps': o.adamEps,
    'weight-decay': o.weightDecay,
    clip: o.clip,
    'max-rows-per-pass': facts.maxRowsPerPass,
    ...(needsTotal(o) ? { steps: o.steps ?? null } : {}),
  }
  if (method !== 'grpo')
    return {
      ...common,
      ...(needsTotal(o) ? { epochs: o.epochs ?? null } : {}),
      'batch-size': o.batchSize,
      'min-reward': o.minReward ?? null,
      temperature: o.temperature,
      ...(o.contextWeight ? { 'context-weight': o.contextWeight } : {}),
    }
  return {
    ...common,
    'prompts-per-step': o.promptsPerStep,
    'samples-per-prompt': o.samplesPerPrompt,
    lag: o.lag,
    aggregation: o.aggregation,
    'epsilon-low': o.epsilonLow,
    'epsilon-high': o.epsilonHigh ?? o.epsilonLow,
    'cispo-cap': o.cispoCap,
    kl: o.kl,
    'kl-ref': o.kl > 0 ? (o.klRef ?? null) : null,
    'kl-bias-correction': o.klBiasCorrection,
    'max-completion-length': o.maxCompletionLength,
  }
}

/** Names a run by what decides it: no clock, host or path (stream contract, "On-policy"). */
export function runId(run: Pick<RunFile, 'model_sha256' | 'start_adapter_sha256' | 'options' | 'seed'>): string {
  const { model_sha256, start_adapter_sha256, options, seed } = run
  return sha256(canonical({ model_sha256, start_adapter_sha256, options, seed }))
}

/**
 * Refuses to go on with a run under other deciding options: UsageError that names the first that differs, with both values.
 *
 * `what` says whose options they are (`this run`, `cg-reward`).
 */
export function refuseOtherOptions(before: Record<string, unknown>, now: Record<string, unknown>, what: string): void {
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [then, today] = [before[name], now[name]]
    if (canonical(then ?? null) === canonical(today ?? null)) continue
    const shown = notFlags.has(name) ? name : `--${name}`
    throw new UsageError(
      `${shown} is ${show(today)}, and ${what} was begun with ${show(then)}: give the same options, or another directory`,
    )
  }
}

const notFlags = new Set(['method', 'logprob-kind'])

function show(value: unknown): string {
  return value === undefined || value === null ? 'not set' : typeof value === 'string' ? value : JSON.stringify(value)
}
