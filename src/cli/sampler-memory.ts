import { modelDirectory, parsePolicy } from '../policy/parse-policy.js'
import { sizeText } from '../train/memory-estimate.js'
import { readModelShape } from '../train/model-shape.js'

/**
 * The bound of a native model's keys and values, for --dry-run: fp32, of every position of every rollout that may be under way. What rollouts share (the prompt of a
 * group, equal first turns) is stored once, so that less is used as a rule.
 */
export function samplerMemory(options: { policy: string; concurrency: number; maxContext?: number | undefined }): string[] {
  const spec = parsePolicy(options.policy)
  if (spec.kind !== 'native') return []
  const { layers, kvHeads, headDim, maxPositions } = readModelShape(modelDirectory(spec.model))
  const position = layers * 2 * kvHeads * headDim * 4
  const positions = Math.min(options.maxContext ?? maxPositions, maxPositions)
  const bytes = options.concurrency * positions * position
  return [`keys and values: at most ${sizeText(bytes)}, ${options.concurrency} rollouts of ${positions} positions of ${sizeText(position)}`]
}
