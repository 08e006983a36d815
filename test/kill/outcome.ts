import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { records } from '../pipeline/process.js'

// biome-ignore lint/suspicious/noExplicitAny: fields of many kinds
type Row = Record<string, any>

/** What a pipe leaves: all of it but `timing` must not depend on what was killed on the way. */
export type Outcome = {
  /** `step` records as they came out of the trainer. */
  steps: Row[]
  /** Every file of the run directory and of the adapter, with a digest of what it holds (times and process ids aside). */
  files: Record<string, string>
  /** Rollouts by step; undefined for a step that was only named by its barrier. */
  sampled: (Row[] | undefined)[]
}

export function outcomeOf(place: string, stdout: string): Outcome {
  const steps = (records(stdout) as Row[]).filter(({ kind }) => kind === 'step').map(untimed)
  const sampled: Outcome['sampled'] = []
  let open: Row[] = []
  for (const row of records(readFileSync(join(place, 'sampled.ndjson'), 'utf8')) as Row[]) {
    if (row.kind === 'rollout') open.push(untimed(row))
    if (row.kind !== 'barrier') continue
    sampled.push(row.replayed ? undefined : open)
    open = []
  }
  return { steps, files: { ...filesIn(place, 'run'), ...filesIn(place, 'out') }, sampled }
}

/** In what the outcome of a pipe that was killed and run again differs from the uninterrupted one; empty if in nothing. */
export function differences(whole: Outcome, again: Outcome): string[] {
  const found: string[] = []
  if (!isDeepStrictEqual(again.steps, whole.steps)) found.push(`step records: ${again.steps.length} of ${whole.steps.length}, or others`)
  const names = [...new Set([...Object.keys(whole.files), ...Object.keys(again.files)])].sort()
  for (const name of names) {
    if (whole.files[name] === again.files[name]) continue
    found.push(
      whole.files[name] === undefined ? `${name} is left over` : again.files[name] === undefined ? `${name} is missing` : `${name} differs`,
    )
  }
  if (again.sampled.length !== whole.sampled.length) found.push(`${again.sampled.length} barriers instead of ${whole.sampled.length}`)
  for (const [step, rollouts] of again.sampled.entries())
    if (rollouts !== undefined && !isDeepStrictEqual(rollouts, whole.sampled[step])) found.push(`rollouts of step ${step}`)
  return found
}

/** The newest version in a run directory; −1: none. */
export function committedIn(place: string): number {
  const dir = join(place, 'run')
  const names = existsSync(dir) ? readdirSync(dir) : []
  return Math.max(-1, ...names.flatMap(name => (/^v\d+$/.test(name) ? [Number(name.slice(1))] : [])))
}

function filesIn(place: string, dir: string): Record<string, string> {
  const found: Record<string, string> = {}
  if (!existsSync(join(place, dir))) return found
  for (const entry of readdirSync(join(place, dir), { withFileTypes: true })) {
    const name = `${dir}/${entry.name}`
    if (entry.isDirectory()) Object.assign(found, { [`${name}/`]: '' }, filesIn(place, name))
    else
      found[name] = createHash('sha256')
        .update(lasting(join(place, name)))
        .digest('hex')
  }
  return found
}

/** The bytes of a file without what a clock measured; of the heartbeat, how the run ended. */
function lasting(file: string): Buffer | string {
  const bytes = readFileSync(file)
  if (file.endsWith('/trainer.json')) return JSON.parse(bytes.toString()).state
  if (!/\.(nd)?json$/.test(file) || !bytes.includes('"timing"')) return bytes
  return JSON.stringify(records(bytes.toString()).map(untimed))
}

function untimed({ timing: _, ...rest }: Row): Row {
  return rest
}
