import { UsageError } from '../record/fault.js'
import type { Method, PolicyOptions, WeightedOptions } from './settings.js'

type Values = Partial<PolicyOptions & WeightedOptions>

/** A named set of options, for the methods that it speaks about. */
type Recipe = { about: string } & Partial<Record<Method, Values>>

const codegrepLora: Values = { loraRank: 32, loraAlpha: 64, loraTargets: 'all' }
const codegrepOptimizer: Values = { beta1: 0.9, beta2: 0.95, weightDecay: 0.1, clip: 1 }

/** What papers trained with, and what suits a model of a million parameters. */
export const recipes: Record<string, Recipe> = {
  codegrep: {
    about: 'CodeGrep, section 4 (formulas 1.7)',
    grpo: {
      ...codegrepLora,
      ...codegrepOptimizer,
      lr: 5e-6,
      schedule: 'cosine',
      warmup: 0.05,
      promptsPerStep: 64,
      samplesPerPrompt: 8,
      aggregation: 'grpo',
      epsilonLow: 0.2,
      epsilonHigh: 0.2,
      kl: 0.02,
      klRef: 'base',
      klBiasCorrection: false,
      maxCompletionLength: 4096,
    },
  },
  'codegrep-tiny': {
    about: 'for a model of about a million parameters: a high learning rate, small steps, a loss that is a mean over tokens',
    sft: {
      loraRank: 16,
      loraAlpha: 32,
      loraTargets: 'all',
      ...codegrepOptimizer,
      weightDecay: 0,
      lr: 3e-3,
      schedule: 'cosine',
      warmup: 0.05,
      batchSize: 8,
      epochs: 2,
      // Fitted at 1, a model that is sharper than its teacher's text would lose that when it is sampled at 1.
      temperature: 1.8,
    },
    grpo: {
      loraRank: 16,
      loraAlpha: 32,
      loraTargets: 'all',
      ...codegrepOptimizer,
      // Half of the groups have equal rewards: a short memory of the second moment would blow up the steps that have little to learn from.
      beta2: 0.999,
      weightDecay: 0,
      // With a constant rate the policy is best after some 20 steps and forgets repositories it does not see from then on.
      lr: 6e-4,
      schedule: 'linear',
      warmup: 4,
      promptsPerStep: 8,
      samplesPerPrompt: 8,
      // A mean of rollout means punishes a long failure hardly more per token than nothing: runs that loop until the limit multiply (37 % of the
      // dev rollouts after 30 steps, 4 % with a mean over tokens).
      aggregation: 'dapo',
      epsilonLow: 0.2,
      epsilonHigh: 0.2,
      // Answering at once pays after a search that found something. Without this anchor some seeds unlearn to search again after one that found nothing.
      kl: 0.02,
      klRef: 'start',
    },
  },
  a2agent: {
    about: 'A2Agent, section 4 (formulas 2.4)',
    sft: { loraRank: 16, loraAlpha: 16, loraTargets: 'all', lr: 2e-4, epochs: 3 },
    awr: {
      loraRank: 16,
      loraAlpha: 16,
      loraTargets: 'all',
      lr: 5e-5,
      schedule: 'linear',
      warmup: 10,
      epochs: 2,
      batchSize: 16,
      weightDecay: 0.01,
    },
  },
}

/**
 * Options with a recipe's values where the user said nothing, and a line for each: what it became, and where the user's own word won.
 *
 * Throws UsageError for a recipe that says nothing about the method. `--steps` beside epochs: the user's steps replace the recipe's epochs.
 */
export function applyRecipe<O extends object>(
  name: string,
  method: Method,
  options: O,
  given: (option: string) => boolean,
): { options: O; lines: string[] } {
  const values = recipes[name]?.[method]
  if (values === undefined) {
    const fitting = Object.keys(recipes).filter(other => recipes[other]![method])
    throw new UsageError(`--recipe ${name} says nothing about ${method}: one of ${fitting.join(', ')} does`)
  }
  const resolved = { ...options } as Record<string, unknown>
  const lines: string[] = [`recipe ${name}: ${recipes[name]!.about}`]
  for (const [option, value] of Object.entries(values)) {
    if (option === 'epochs' && given('steps')) continue
    if (!given(option)) {
      resolved[option] = value
      lines.push(`  --${flag(option)} ${value}`)
    } else if (resolved[option] !== value) lines.push(`  --${flag(option)} ${resolved[option]} (yours; the recipe has ${value})`)
    else lines.push(`  --${flag(option)} ${value}`)
  }
  return { options: resolved as O, lines }
}

function flag(option: string): string {
  return option.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}
