import { modelDirectory } from '../policy/parse-policy.js'
import { startingShape } from './init-adapter.js'
import { memoryBudget } from './memory-budget.js'
import { defaultRowsPerPass, estimateMemory, memoryLines } from './memory-estimate.js'
import { readModelShape } from './model-shape.js'
import { createSchedule, needsTotal } from './schedule.js'
import { checkOptions, type Method, type PolicyOptions, type WeightedOptions } from './settings.js'

/**
 * What a run would do and need, in lines for a person (--dry-run): reads the model's config.json, and no weight and no record.
 *
 * Throws UsageError as the run itself would.
 */
export function planLines(method: Method, options: WeightedOptions | PolicyOptions, given: (option: string) => boolean): string[] {
  checkOptions(options)
  const onPolicy = 'promptsPerStep' in options
  const full = !onPolicy && options.full
  const dir = modelDirectory(options.model)
  const shape = readModelShape((!onPolicy && options.modelConfig) || dir)
  const lora = full ? undefined : startingShape(options, given)
  const rows = options.maxRowsPerPass ?? defaultRowsPerPass(shape, lora)
  const epochs = onPolicy ? undefined : options.epochs
  // with epochs the number of steps is known when the input has been read
  if (needsTotal(options) && epochs === undefined && onPolicy) createSchedule(options, options.steps, '--steps')
  const groups = onPolicy ? options.promptsPerStep : options.batchSize
  const length =
    options.steps !== undefined
      ? `${options.steps} steps`
      : epochs !== undefined
        ? `${epochs} passes`
        : onPolicy
          ? 'as long as rollouts come'
          : '1 pass'
  return [
    `${method}: ${onPolicy ? `${options.promptsPerStep} prompts × ${options.samplesPerPrompt} rollouts, lag ${options.lag}` : `${options.batchSize} rollouts`} a step; ${length}`,
    `lr ${options.lr}, ${options.schedule}, warm-up ${options.warmup}; AdamW ${options.beta1}/${options.beta2}, weight decay ${options.weightDecay}, clip ${options.clip}`,
    ...(onPolicy ? [lossLine(options)] : []),
    lora
      ? `adapter: rank ${lora.rank}, alpha ${lora.alpha}, ${lora.targets.join(', ')}${options.initAdapter ? `, from ${options.initAdapter}` : ', fresh'}`
      : `all weights, from ${!onPolicy && options.init === 'random' ? 'random ones' : dir}, stored as ${(!onPolicy && options.saveDtype) || 'they were'}`,
    ...memoryLines(estimateMemory(shape, lora, rows, groups, memoryBudget(options.memory)), rows),
    `versions: ${options.publish ?? 'not kept'}; ${lora ? 'adapter' : 'model'}: ${options.out ?? 'only among the versions'}`,
  ]
}

function lossLine(o: PolicyOptions): string {
  const clip =
    o.aggregation === 'cispo'
      ? `ratio capped at ${o.cispoCap}`
      : `ratio within 1 - ${o.epsilonLow} and 1 + ${o.epsilonHigh ?? o.epsilonLow}`
  const reference = o.klRef ?? (o.initAdapter === undefined ? 'base' : 'start')
  const kl = o.kl > 0 ? `KL ${o.kl} to the ${reference}${o.klBiasCorrection ? ', bias-corrected' : ''}` : 'no KL'
  return `loss: ${o.aggregation}, ${clip}, ${kl}`
}
