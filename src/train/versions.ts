import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { Trained } from '../engine/types.js'
import { FatalError } from '../record/fault.js'
import { optimizerFile, type PolicyFile, policyFile, versionName, versionOf } from '../record/run-directory.js'
import type { Step } from '../record/schema.js'
import { step } from '../record/schema.js'
import { writing } from '../record/write-failure.js'
import { sync, syncDirectory } from './durable.js'
import type { Product } from './product.js'
import { readJson } from './read-json.js'

/** How far the data had been used when a version was made; the same however often the run was interrupted. */
const cursorFile = z.object({
  /** Steps taken, this one included. */
  steps: z.number().int().nonnegative(),
  /** Rollouts that came for these steps. */
  rows: z.number().int().nonnegative(),
  /** Of the step's data: its barrier's digest where there is one. */
  digest: z.string(),
})
export type Cursor = z.infer<typeof cursorFile>

/** What a version holds beside its adapter or model; version 0 has neither. */
export type VersionContent = {
  /** Writes m, v and the optimiser's step count into a file. */
  saveState(file: string): Promise<void>
  record: Step
  cursor: Cursor
}

/** Versions that stand whole in a run directory, ascending. */
export function versionsIn(dir: string): number[] {
  return readdirSync(dir)
    .flatMap(name => versionOf(name) ?? [])
    .sort((a, b) => a - b)
}

/** Puts what is trained into a fresh, unfinished directory beside where its version will stand. Gives the place and the content's digest. Throws FatalError and EngineError E_WRITE. */
export async function stageVersion(
  dir: string,
  version: number,
  product: Product,
  trained: Trained,
): Promise<{ staged: string; sha256: string }> {
  const staged = join(dir, `.${versionName(version)}.unfinished`)
  writing(staged, () => {
    rmSync(staged, { recursive: true, force: true })
    mkdirSync(staged)
  })
  await product.save(trained, staged)
  return { staged, sha256: await product.digest(staged) }
}

/**
 * Commits a staged version by one rename: a reader finds all of it or nothing, after any crash.
 *
 * Throws FatalError E_RUN when the version stands already (a complete version is never written again), E_WRITE when the disk does not take it: then there is
 * no such version, and the same command makes it.
 */
export async function commitVersion(staged: string, policy: PolicyFile, content?: VersionContent): Promise<void> {
  const dir = dirname(staged)
  const final = join(dir, versionName(policy.version))
  if (existsSync(final)) throw new FatalError('E_RUN', `${final} stands already: another trainer has written into this run`)
  const put = (name: string, value: object) =>
    writing(join(staged, name), () => writeFileSync(join(staged, name), `${JSON.stringify(value)}\n`))
  put('policy.json', policy)
  if (content) {
    await content.saveState(join(staged, optimizerFile))
    put('step.json', content.record)
    put('cursor.json', content.cursor)
  }
  syncDirectory(staged)
  writing(final, () => renameSync(staged, final))
  sync(dir)
}

/** What stands in a committed version. Throws FatalError E_RUN that names a file that is missing or not what it should be. */
export function readVersion(
  dir: string,
  version: number,
): { path: string; policy: PolicyFile; optimizer: string; record?: Step; cursor?: Cursor } {
  const path = join(dir, versionName(version))
  const policy = readJson(join(path, 'policy.json'), policyFile)
  const optimizer = join(path, optimizerFile)
  if (version === 0) return { path, policy, optimizer }
  return {
    path,
    policy,
    optimizer,
    record: readJson(join(path, 'step.json'), step),
    cursor: readJson(join(path, 'cursor.json'), cursorFile),
  }
}

/** Is this the name of something in a run directory that a trainer leaves half-written when it dies? */
export function isUnfinished(name: string): boolean {
  return /^\.v\d+\.unfinished$|^trainer\.json\.new$|^(run\.json|steps\.ndjson|upstream\.json|lock|lock\.break)\..*\.tmp$/.test(name)
}

/** Removes what a trainer that died left half-written. Only the holder of the lock may. */
export function removeUnfinished(dir: string): void {
  for (const name of readdirSync(dir))
    if (isUnfinished(name)) writing(join(dir, name), () => rmSync(join(dir, name), { recursive: true, force: true }))
}

export type Retention = {
  lag: number
  /** At least this many of the newest. */
  keep: number
  /** Of the best figure so far. */
  best: number | undefined
  /** Version 0 is needed: the KL term refers to it. */
  start: boolean
}

/** Removes versions that nobody needs any more, and m and v from all but the newest two (stream contract, "On-policy"). */
export function pruneVersions(dir: string, { lag, keep, best, start }: Retention): void {
  const all = versionsIn(dir)
  const recent = new Set(all.slice(-Math.max(lag + 2, keep)))
  const resumable = new Set(all.slice(-2))
  for (const version of all) {
    const path = join(dir, versionName(version))
    if (recent.has(version) || version === best || (start && version === 0)) {
      if (!resumable.has(version)) rmSync(join(path, optimizerFile), { force: true })
      continue
    }
    // out of sight first, so that no reader meets half of it
    const doomed = join(dir, `.${versionName(version)}.unfinished`)
    writing(path, () => {
      rmSync(doomed, { recursive: true, force: true })
      renameSync(path, doomed)
      rmSync(doomed, { recursive: true, force: true })
    })
  }
}
