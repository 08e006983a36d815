import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Run } from '../record/schema.js'
import { writeDurably } from './durable.js'
import { readJson } from './read-json.js'
import { refuseOtherOptions } from './run-identity.js'

const optionsOfStages = z.record(z.string(), z.record(z.string(), z.unknown()))

/** Says where the policy is, not what it is: that stands in every rollout, by digest. */
const places = new Set(['policy'])

/**
 * Holds the stages before this one to the options that the run was begun with (scheme, toolset, prompt …): DIR/upstream.json keeps those of the first time.
 *
 * Throws UsageError that names stage and option where one differs. A stage that was not there the first time is added.
 */
export function holdUpstream(dir: string, runs: readonly Run[]): void {
  const file = join(dir, 'upstream.json')
  const before = existsSync(file) ? readJson(file, optionsOfStages) : {}
  const now = { ...before }
  const seen = new Map<string, number>()
  for (const { stage, command, options } of runs) {
    // several files may bring a stage several times: the first is compared with the first
    const nth = (seen.get(stage) ?? 0) + 1
    seen.set(stage, nth)
    const name = nth === 1 ? stage : `${stage} #${nth}`
    const deciding = Object.fromEntries(Object.entries(options).filter(([option]) => !places.has(option)))
    if (before[name]) refuseOtherOptions(before[name], deciding, `${command} of this run`)
    now[name] = deciding
  }
  if (Object.keys(now).length > Object.keys(before).length) writeDurably(file, `${JSON.stringify(now)}\n`)
}
