import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { FatalError } from '../record/fault.js'
import { type PolicyFile, policyFile, type RunFile, runFile, versionName, versionOf } from '../record/run-directory.js'

/** Waiting, as tests may replace it. */
export type Clock = { now(): number; sleep(ms: number, signal?: AbortSignal): Promise<void> }

export const realClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done, { once: true })
    }),
}

/**
 * DIR/run.json as soon as the trainer has written it; undefined after an abort. How long that takes is the trainer's affair while its heart beats: `look` throws
 * when it does not.
 */
export async function waitForRun(dir: string, look: () => Promise<void>, clock: Clock, signal: AbortSignal): Promise<RunFile | undefined> {
  while (!signal.aborted) {
    const run = await readJson(join(dir, 'run.json'), runFile)
    if (run) return run
    await look()
    await clock.sleep(50, signal)
  }
  return undefined
}

/** The newest committed version; −1: none yet. Unfinished ones have other names. */
export async function newestVersion(dir: string): Promise<number> {
  const names = await readdir(dir).catch(() => [])
  return Math.max(-1, ...names.map(versionOf).filter(version => version !== undefined))
}

/** Directory and policy.json of a committed version; undefined: not there (yet). Throws FatalError E_OTHER_RUN for one of another run. */
export async function committedVersion(
  dir: string,
  version: number,
  run: RunFile,
): Promise<{ path: string; policy: PolicyFile } | undefined> {
  const path = join(dir, versionName(version))
  const policy = await readJson(join(path, 'policy.json'), policyFile)
  if (!policy) return undefined
  if (policy.run_id !== run.run_id || policy.version !== version)
    throw new FatalError(
      'E_OTHER_RUN',
      `${path}: policy.json is of run ${policy.run_id}, version ${policy.version}: two trainers used this directory; begin in an empty one`,
    )
  return { path, policy }
}

/** A JSON file that another process replaces by rename; undefined where it is not there. */
export async function readJson<T extends z.ZodType>(file: string, schema: T): Promise<z.infer<T> | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new FatalError('E_RUN_DIR', `${file}: ${(error as Error).message}`)
  }
  try {
    return schema.parse(JSON.parse(text))
  } catch (error) {
    throw new FatalError('E_RUN_DIR', `${file}: not what cg-train writes: ${(error as Error).message.replace(/\s+/g, ' ').slice(0, 200)}`)
  }
}
