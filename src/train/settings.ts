import { relative, resolve } from 'node:path'
import type { Aggregation, LoraConfig, LoraTarget, LossOptions, OptimizerOptions, Precision, StoredType } from '../engine/types.js'
import { UsageError } from '../record/fault.js'
import type { ScheduleName } from './schedule.js'

export type Method = 'sft' | 'awr' | 'grpo'

/** What every method is told, by the names of the options. */
export type CommonOptions = {
  model: string | undefined
  initAdapter: string | undefined
  out: string | undefined
  publish: string | undefined
  resume: boolean
  choose: 'last' | 'best'
  loraRank: number
  loraAlpha: number
  loraTargets: string
  lr: number
  schedule: ScheduleName
  warmup: number
  steps: number | undefined
  beta1: number
  beta2: number
  adamEps: number
  weightDecay: number
  clip: number
  maxRowsPerPass: number | undefined
  memory: number | undefined
  evalEvery: number | undefined
  evalFile: string | undefined
  evalSamples: number
  keep: number
  allowPartial: boolean
  threads: number
  device: 'auto' | 'cpu' | 'reference' | 'reference-remote'
  dtype: Precision
}

/** Of `sft`: training of all weights. */
export type WholeOptions = {
  full: boolean
  init: 'random' | undefined
  modelConfig: string | undefined
  /** Undefined: as the weights were stored. */
  saveDtype: StoredType | undefined
}

/** Of `sft` and `awr`. */
export type WeightedOptions = CommonOptions &
  Partial<WholeOptions> & {
    contextWeight?: number
    epochs: number | undefined
    batchSize: number
    minReward?: number | undefined
    temperature: number
  }

/** Of `grpo`. */
export type PolicyOptions = CommonOptions & {
  promptsPerStep: number
  samplesPerPrompt: number
  lag: number
  aggregation: Aggregation
  epsilonLow: number
  epsilonHigh: number | undefined
  cispoCap: number
  kl: number
  klRef: 'base' | 'start' | undefined
  klBiasCorrection: boolean
  maxCompletionLength: number
}

/** Checks what the options of one run must have together. Throws UsageError that says which option is missing or contradicts. */
export function checkOptions<O extends CommonOptions>(options: O): asserts options is O & { model: string } {
  const { model, out, publish, resume, choose, evalEvery, evalFile } = options
  if (model === undefined) throw new UsageError('--model is missing: name the checkpoint directory of the base model')
  if (out === undefined && publish === undefined)
    throw new UsageError('neither --out nor --publish: what is learnt would be lost; name a directory')
  if (resume && publish === undefined) throw new UsageError('--resume needs --publish: only a run directory can be gone on with')
  if ((evalEvery === undefined) !== (evalFile === undefined)) throw new UsageError('--eval-every and --eval-file go together: give both')
  const inside = (dir: string | undefined, other: string | undefined) =>
    dir !== undefined && other !== undefined && !relative(resolve(dir), resolve(other)).startsWith('..')
  if (inside(out, publish) || inside(publish, out))
    throw new UsageError('--out and --publish are within one another: --out is replaced as a whole; name another')
  for (const [flag, dir] of [
    ['--init-adapter', options.initAdapter],
    ['--model', model],
  ] as const)
    if (inside(out, dir)) throw new UsageError(`--out would replace ${flag} ${dir}: name another directory`)
  if (choose === 'best' && (evalFile === undefined || publish === undefined))
    throw new UsageError('--choose best needs --publish and --eval-file: there is no best version without figures and versions')
}

const shortTargets: Record<string, LoraTarget> = {
  q: 'q_proj',
  k: 'k_proj',
  v: 'v_proj',
  o: 'o_proj',
  gate: 'gate_proj',
  up: 'up_proj',
  down: 'down_proj',
}

/** The adapter that the options ask for. `--lora-targets all` or a list of linears, `q,v` or by their whole names. */
export function loraConfig({ loraRank, loraAlpha, loraTargets }: CommonOptions): LoraConfig {
  const all = Object.values(shortTargets)
  const targets =
    loraTargets === 'all'
      ? all
      : loraTargets.split(',').map(name => {
          const target = shortTargets[name.trim().replace(/_proj$/, '')]
          if (target === undefined)
            throw new UsageError(`--lora-targets: '${name.trim()}' is none of ${Object.keys(shortTargets).join(', ')}, and not 'all'`)
          return target
        })
  return { rank: loraRank, alpha: loraAlpha, targets: all.filter(target => targets.includes(target)) }
}

export function optimizerOptions({ beta1, beta2, adamEps, weightDecay }: CommonOptions): OptimizerOptions {
  return { beta1, beta2, eps: adamEps, weightDecay }
}

/** The policy loss that the options ask for (formulas 3); the upper epsilon is the lower one unless it is given. */
export function policyLoss(options: PolicyOptions): Extract<LossOptions, { kind: 'policy' }> {
  const { aggregation, epsilonLow, epsilonHigh, cispoCap, kl, klBiasCorrection, maxCompletionLength } = options
  return {
    kind: 'policy',
    aggregation,
    epsilonLow,
    epsilonHigh: epsilonHigh ?? epsilonLow,
    cispoCap,
    kl,
    klBiasCorrection,
    maxCompletionLength,
  }
}
