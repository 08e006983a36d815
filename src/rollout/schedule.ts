import { canonical, sha256 } from '../record/canonical.js'
import type { Known } from '../record/item.js'
import { passCounter } from './sample-instances.js'
import { instanceDigest } from './settings.js'

type InstanceItem = Known<'instance'>

/** One step's prompts, in order. `digest` names them: sha256 of canonical JSON [[instance id, pass]…]. */
export type StepPlan = { step: number; prompts: { item: InstanceItem; pass: number }[]; digest: string }

export type ScheduleOptions = {
  seed: string
  promptsPerStep: number
  /** Steps in all, repeating the instances as often as it takes; null: one pass, the last step as small as it comes out. May be raised on the way. */
  steps: number | null
  /** Leave a last, smaller step out. */
  dropLast: boolean
}

/**
 * Which prompts each step has. A pass orders the instances by sha256(seed, pass, content); steps run across passes (stream contract, "Groups and barriers").
 *
 * The same instances give the same steps in whatever order they came in.
 */
export function* stepPlans(items: readonly InstanceItem[], options: ScheduleOptions): Generator<StepPlan> {
  const { seed, promptsPerStep, dropLast } = options
  const digests = items.map(item => instanceDigest(item.record))
  const seen = passCounter()
  let step = 0
  let prompts: StepPlan['prompts'] = []
  for (let round = 0; items.length > 0 && (options.steps === null ? round === 0 : step < options.steps); round++) {
    const keys = digests.map(digest => sha256(canonical([seed, round, digest])))
    const order = items.map((_, i) => i).sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b))
    for (const i of order) {
      prompts.push({ item: items[i]!, pass: seen(items[i]!.record) })
      if (prompts.length < promptsPerStep) continue
      yield plan(step++, prompts)
      prompts = []
      if (step === options.steps) return
    }
  }
  if (prompts.length > 0 && !dropLast) yield plan(step, prompts)
}

function plan(step: number, prompts: StepPlan['prompts']): StepPlan {
  return { step, prompts, digest: sha256(canonical(prompts.map(({ item, pass }) => [item.record.instance_id, pass]))) }
}
