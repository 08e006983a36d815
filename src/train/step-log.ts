import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FatalError } from '../record/fault.js'
import { type Step, step as schema } from '../record/schema.js'
import { writing } from '../record/write-failure.js'
import { sync, writeDurably } from './durable.js'
import { readVersion, versionsIn } from './versions.js'

const logName = 'steps.ndjson'

/** Adds a committed step to the run's log; versions come and go, the log keeps them all. Throws FatalError E_WRITE; what it left in the log is mended at the next start. */
export function appendStep(dir: string, record: Step): void {
  const file = join(dir, logName)
  writing(file, () => appendFileSync(file, `${JSON.stringify(record)}\n`))
  sync(file)
}

/**
 * All committed `step` records of a run, in order, one for each version from 1 to the newest.
 *
 * A crash can leave the log one step behind its versions, or with a cut last line: the log is mended from the versions. Throws FatalError E_RUN when a step is
 * in neither.
 */
export function committedSteps(dir: string): Step[] {
  const versions = versionsIn(dir).filter(version => version > 0)
  const newest = versions.at(-1) ?? 0
  const logged = readLog(join(dir, logName))
  const records = logged.slice(0, newest)
  for (let version = records.length + 1; version <= newest; version++) {
    if (!versions.includes(version))
      throw new FatalError(
        'E_RUN',
        `${join(dir, logName)} lacks step ${version - 1}, and its version is gone: start again in another directory`,
      )
    records.push(readVersion(dir, version).record!)
  }
  if (records.length !== logged.length) writeDurably(join(dir, logName), records.map(record => `${JSON.stringify(record)}\n`).join(''))
  return records
}

/** The log as far as it is good: consecutive whole records from version 1. */
function readLog(file: string): Step[] {
  if (!existsSync(file)) return []
  const records: Step[] = []
  for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    const record = parse(line)
    if (record?.version !== records.length + 1) break
    records.push(record)
  }
  return records
}

function parse(line: string): Step | undefined {
  try {
    const value = JSON.parse(line) as Step
    return schema.safeParse(value).success ? value : undefined // as it was written, to the order of its fields
  } catch {
    return undefined
  }
}
