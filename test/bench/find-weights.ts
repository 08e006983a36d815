import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { adapterDigest, modelDigest } from '#cg/model/model-digest.js'
import { versionName } from '#cg/record/run-directory.js'
import type { PolicyIdentity } from '#cg/record/schema.js'

/**
 * The checkpoint that a policy sampled from, by its digest: the given directory, else one of the policy's name in $CG_MODELS, here, beside the rollouts or in
 * fixtures/.
 *
 * Throws an Error that says what was looked at, and that another checkpoint sampled where the given one does not fit.
 */
export function findModel(policy: PolicyIdentity, file: string, given: string | undefined): Promise<string> {
  const name = policy.name.split('@')[0]!
  const places = [...(process.env.CG_MODELS ? [process.env.CG_MODELS] : []), ...around(file), 'fixtures']
  return withDigest('model', policy.model_sha256, modelDigest, given === undefined ? places.map(place => join(place, name)) : [given])
}

/**
 * The adapter that a policy sampled with, by its digest; null: the base model. `given` is an adapter or a run directory with its versions; else one of the
 * policy's name, or a run directory, here or beside the rollouts. Throws as `findModel` does.
 */
export async function findAdapter(policy: PolicyIdentity, file: string, given: string | undefined): Promise<string | null> {
  if (policy.adapter_sha256 === undefined) return null
  const version = policy.version === undefined ? undefined : versionName(policy.version)
  const name = policy.name.split('@')[1]
  const places = given === undefined ? around(file) : [given]
  const candidates = places.flatMap(place => [
    ...(given === undefined ? (name ? [join(place, name)] : []) : [place]),
    ...(version === undefined ? [] : [join(place, version), ...directories(place).map(run => join(run, version))]),
  ])
  return withDigest('adapter', policy.adapter_sha256, adapterDigest, candidates)
}

async function withDigest(
  what: 'model' | 'adapter',
  wanted: string | undefined,
  digest: (dir: string) => Promise<string>,
  candidates: readonly string[],
): Promise<string> {
  const there = [...new Set(candidates)].filter(dir => existsSync(dir))
  for (const dir of there) if ((await digest(dir).catch(() => undefined)) === wanted) return dir
  const seen =
    there.length > 0 ? `none of ${there.join(', ')} is it` : `there is no ${candidates.map(c => basename(c)).at(0) ?? what} nearby`
  throw new Error(
    `the ${what} that sampled (${wanted?.slice(0, 12) ?? 'the record names none'}) is not found: ${seen}; name it with --${what} DIR`,
  )
}

/** Where a command's neighbours lie: the working directory, and that of the file it reads. */
function around(file: string): string[] {
  return file === '-' ? ['.'] : ['.', dirname(file)]
}

function directories(place: string): string[] {
  if (!existsSync(place)) return []
  return readdirSync(place)
    .map(name => join(place, name))
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
}
