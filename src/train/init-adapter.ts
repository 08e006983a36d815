import { join } from 'node:path'
import { z } from 'zod'
import type { LoraConfig, LoraTarget } from '../engine/types.js'
import { UsageError } from '../record/fault.js'
import { readJson } from './read-json.js'
import { type CommonOptions, loraConfig } from './settings.js'

const peftConfig = z.looseObject({ r: z.number(), lora_alpha: z.number(), target_modules: z.array(z.string()) })

/**
 * The shape of the adapter that training starts from: `--init-adapter`'s own, else what the LoRA options say.
 *
 * Throws UsageError when LoRA options are given that the adapter contradicts; whether its tensors fit the model, the engine says.
 */
export function startingShape(options: CommonOptions, given: (option: string) => boolean): LoraConfig {
  const wanted = loraConfig(options)
  if (options.initAdapter === undefined) return wanted
  const { r, lora_alpha, target_modules } = readJson(join(options.initAdapter, 'adapter_config.json'), peftConfig)
  const targets = [...target_modules].sort() as LoraTarget[]
  const differs: [option: string, flag: string, own: unknown, asked: unknown][] = [
    ['loraRank', '--lora-rank', r, wanted.rank],
    ['loraAlpha', '--lora-alpha', lora_alpha, wanted.alpha],
    ['loraTargets', '--lora-targets', targets.join(','), [...wanted.targets].sort().join(',')],
  ]
  for (const [option, flag, own, asked] of differs)
    if (given(option) && own !== asked)
      throw new UsageError(
        `${flag} ${asked}, and --init-adapter has ${own}: training goes on with that adapter's shape; leave the option out`,
      )
  return { rank: r, alpha: lora_alpha, targets }
}
