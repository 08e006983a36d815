import { dirname, relative, resolve } from 'node:path'
import { UsageError } from '../record/fault.js'
import type { WeightedOptions } from './settings.js'

/** Options of adapters, by name and flag. */
const ofAdapters: [option: string, flag: string][] = [
  ['initAdapter', '--init-adapter'],
  ['loraRank', '--lora-rank'],
  ['loraAlpha', '--lora-alpha'],
  ['loraTargets', '--lora-targets'],
  ['recipe', '--recipe'],
]
const ofWholeModels: [option: string, flag: string][] = [
  ['init', '--init'],
  ['modelConfig', '--model-config'],
  ['saveDtype', '--save-dtype'],
]

/**
 * The options of `cg-train sft` with what --full decides filled in: the learning rate, and where the tokenizer comes from.
 *
 * An adapter is learnt at 2e-4; all weights at a tenth of that, as every one of them moves; random ones, which have everything to learn, at 1e-3. Throws
 * UsageError for options of adapters beside --full, and for those of whole models without it.
 */
export function resolveWhole<O extends Omit<WeightedOptions, 'lr'> & { lr: number | undefined }>(
  options: O,
  given: (option: string) => boolean,
): O & { lr: number } {
  const { full, init, modelConfig, out } = options
  const lr = options.lr ?? (init === 'random' ? 1e-3 : full ? 2e-5 : 2e-4)
  for (const [option, flag] of full ? ofAdapters : ofWholeModels)
    if (given(option)) throw new UsageError(full ? `${flag} is of adapters, and --full trains the model itself` : `${flag} needs --full`)
  if (modelConfig === undefined) return { ...options, lr }
  if (init !== 'random') throw new UsageError('--model-config needs --init random: a model that is there has a config.json')
  if (out !== undefined && !relative(resolve(out), resolve(modelConfig)).startsWith('..'))
    throw new UsageError(`--out would replace --model-config ${modelConfig}: name another directory`)
  return { ...options, lr, model: options.model ?? dirname(modelConfig) }
}
