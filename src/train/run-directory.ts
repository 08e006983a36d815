import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Trained } from '../engine/types.js'
import { FatalError, UsageError } from '../record/fault.js'
import { makeDirectory } from '../record/make-directory.js'
import { type RunFile, runFile, versionName } from '../record/run-directory.js'
import type { Step } from '../record/schema.js'
import { discardTemporary } from '../record/temporary.js'
import { writing } from '../record/write-failure.js'
import { sync, syncDirectory, writeDurably } from './durable.js'
import { type Heartbeat, startHeartbeat } from './heartbeat.js'
import { lockRunDirectory } from './lock.js'
import { ownsAdapterFile, type Product } from './product.js'
import { readJson } from './read-json.js'
import { refuseOtherOptions, runId } from './run-identity.js'
import { committedSteps } from './step-log.js'
import { commitVersion, isUnfinished, readVersion, removeUnfinished, stageVersion, versionsIn } from './versions.js'

/** A run directory that is ours to write. */
export type HeldDirectory = { dir: string; heartbeat: Heartbeat; release(): void }

/**
 * Takes a run directory for this process: made if need be, locked, cleared of what a dead trainer left half-written, its heartbeat started.
 *
 * Throws UsageError for one that holds something, without `resume`; FatalError E_LOCK while another process trains in it, E_WRITE when it cannot be written.
 */
export function holdRunDirectory(dir: string, resume: boolean): HeldDirectory {
  if (existsSync(dir)) refuseFile('--publish', dir)
  makeDirectory(dir)
  const begun = existsSync(join(dir, 'run.json'))
  const others = readdirSync(dir).filter(name => !/^(lock|lock\.break|trainer\.json)$/.test(name) && !isUnfinished(name))
  if (!resume && (begun || others.length > 0))
    throw new UsageError(`${dir} is not empty: add --resume to go on with the run in it, or name another directory`)
  const foreign = others.find(name => !name.startsWith('.'))
  if (resume && !begun && foreign !== undefined) throw new UsageError(`${dir} holds ${foreign}, and no run: name another directory`)
  const unlock = lockRunDirectory(dir)
  try {
    removeUnfinished(dir)
    return { dir, heartbeat: startHeartbeat(dir), release: unlock }
  } catch (error) {
    unlock()
    throw error
  }
}

/** What run.json is to say, but for what only the start tells. */
export type RunWish = {
  method: RunFile['method']
  model_sha256: string
  prompts_per_step: number
  samples_per_prompt: number
  lag: number
  steps: number | null
  seed: string
  options: Record<string, unknown>
}

/** Where a run begins, or goes on. */
export type RunStart = {
  runId: string
  /** To train: that of the newest version. */
  trained: Trained
  /** The optimiser's state to load; none at version 0. */
  optimizer: string | undefined
  /** `step` records of the versions that stand already. */
  committed: Step[]
  /** Rollouts that they were made from. */
  rows: number
}

/**
 * Begins the run in a held directory, or goes on with it: run.json, version 0, the newest version.
 *
 * `wanted` is what run.json would say. Throws UsageError that names a deciding option that differs from
 * those of the run (`steps` may change where nothing depends on it), FatalError E_RUN for a damaged directory.
 */
export async function beginOrResume(dir: string, product: Product, wanted: RunWish): Promise<RunStart> {
  const file = join(dir, 'run.json')
  const stored = existsSync(file) ? readJson(file, runFile) : undefined
  if (stored) {
    refuseOtherOptions({ ...stored.options, seed: stored.seed }, { ...wanted.options, seed: wanted.seed }, 'this run')
    if (stored.model_sha256 !== wanted.model_sha256)
      throw new UsageError(`--model has other weights than this run was begun with: give the same model, or another directory`)
  }
  const newest = versionsIn(dir).at(-1)
  let made: Trained | undefined
  if (newest === undefined) made = await makeVersion0(dir, wanted, product, stored)
  else if (stored === undefined) throw new FatalError('E_RUN', `${dir} has versions and no run.json: start again in another directory`)
  else if (stored.steps !== wanted.steps) writeDurably(file, `${JSON.stringify({ ...stored, steps: wanted.steps })}\n`)

  const run = readJson(file, runFile)
  const committed = committedSteps(dir)
  const { path, optimizer, cursor } = readVersion(dir, newest ?? 0)
  if (newest !== undefined && newest > 0 && !existsSync(optimizer))
    throw new FatalError('E_RUN', `${optimizer} is gone, so the run cannot go on: start again in another directory`)
  const trained = made ?? (await product.load(path))
  return { runId: run.run_id, trained, optimizer: newest ? optimizer : undefined, committed, rows: cursor?.rows ?? 0 }
}

/** run.json stands before version 0 does: a crash between the two is mended by making version 0 again. */
async function makeVersion0(dir: string, wanted: RunWish, product: Product, stored: RunFile | undefined): Promise<Trained> {
  const trained = await product.start()
  const { staged, sha256 } = await stageVersion(dir, 0, product, trained)
  const named = { ...wanted, start_adapter_sha256: sha256 }
  const run = { run_id: runId(named), ...named }
  if (stored && stored.run_id !== run.run_id) throw new FatalError('E_RUN', `${dir}/run.json begins otherwise: name another directory`)
  writeDurably(join(dir, 'run.json'), `${JSON.stringify(run)}\n`)
  await commitVersion(staged, { run_id: run.run_id, version: 0, sha256 })
  return trained
}

/**
 * Puts an adapter or a model at `out`, whole or not at all; `save` writes its files. One that stands there is moved aside until the new one stands, and comes back
 * if it does not; after a crash between the two, `checkOut` of the next run brings it back.
 */
export async function placeOut(out: string, save: (dir: string) => Promise<void>): Promise<void> {
  const { fresh, replaced } = besides(out)
  try {
    writing(fresh, () => rmSync(fresh, { recursive: true, force: true }))
    makeDirectory(fresh)
    await save(fresh)
    syncDirectory(fresh)
    writing(out, () => exchange(fresh, out, replaced))
  } catch (error) {
    discardTemporary(fresh)
    throw error
  }
  sync(dirname(resolve(out)))
  writing(replaced, () => rmSync(replaced, { recursive: true, force: true }))
}

function exchange(fresh: string, out: string, replaced: string): void {
  rmSync(replaced, { recursive: true, force: true })
  if (existsSync(out)) renameSync(out, replaced)
  try {
    renameSync(fresh, out)
  } catch (error) {
    if (existsSync(replaced)) renameSync(replaced, out)
    throw error
  }
}

function besides(out: string): { fresh: string; replaced: string } {
  const name = out.replace(/\/+$/, '')
  return { fresh: `${name}.unfinished`, replaced: `${name}.replaced` }
}

/** Throws UsageError when `out` holds something that is none of `owns`' files: it would be lost at the end. What a crash left aside is put back first. */
export function checkOut(out: string, owns: (name: string) => boolean = ownsAdapterFile): void {
  const { replaced } = besides(out)
  if (!existsSync(out) && existsSync(replaced)) writing(out, () => renameSync(replaced, out))
  if (!existsSync(out)) return
  refuseFile('--out', out)
  const foreign = readdirSync(out).find(name => !owns(name))
  const what = owns === ownsAdapterFile ? 'an adapter' : 'a model'
  if (foreign !== undefined) throw new UsageError(`--out ${out} holds ${foreign}: name a new directory, or one with ${what} to replace`)
}

function refuseFile(flag: string, path: string): void {
  if (!statSync(path).isDirectory()) throw new UsageError(`${flag} ${path} is a file: name a directory`)
}

/** `DIR/v000007`. */
export function versionPath(dir: string, version: number): string {
  return join(dir, versionName(version))
}
