import type { Item, Output } from '../record/item.js'
import type { Instance } from '../record/schema.js'
import { mapRecords, type StageContext } from '../record/stage.js'
import { type Sampler, sampleGroup } from './sample-group.js'
import { instanceDigest } from './settings.js'

export type InstancesContext = StageContext & { count: { cached: number }; cache: { flush(): void } }

/**
 * Rolls out every instance of the input, groups in input order whatever `jobs` is; everything else passes in place.
 *
 * An instance whose content was seen before is another pass: it is sampled anew. `promptsPerStep` only numbers the groups (`group.index`). Results that
 * cannot be computed again (`precious`: a server's) are committed before they are given out.
 */
export async function* sampleInstances(
  input: AsyncIterable<Item>,
  sampler: Sampler,
  {
    jobs,
    promptsPerStep,
    precious,
    context,
  }: { jobs: number; promptsPerStep?: number | undefined; precious: boolean; context: InstancesContext },
): AsyncGenerator<Output> {
  const seen = passCounter()
  let groups = 0
  yield* mapRecords(input, 'instance', { jobs, context }, async (instance, origin, signal) => {
    const pass = seen(instance)
    const ordinal = groups++
    const index = promptsPerStep ? ordinal % promptsPerStep : ordinal
    const { rollouts, faults, cached } = await sampleGroup(sampler, instance, { pass, index }, signal)
    if (cached) context.count.cached++
    const failures = faults.map(fault => context.fault(fault, { kind: 'instance', record: instance, origin }))
    if (precious) context.cache.flush()
    return [...rollouts, ...failures]
  })
}

/** How often an instance's content came before. */
export function passCounter(): (instance: Instance) => number {
  const passes = new Map<string, number>()
  return instance => {
    const digest = instanceDigest(instance)
    const pass = passes.get(digest) ?? 0
    passes.set(digest, pass + 1)
    return pass
  }
}
