import { readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { discardTemporary, leftBehind } from '../record/temporary.js'
import { lockState } from './holder.js'
import { isDeadLease } from './lease.js'
import { withLock } from './lock.js'

/**
 * Removes what killed processes left in a store, so that it does not gather over many nights: temporary files, worktrees on their way out, leases, clones
 * that were not finished. What others do at the same time is not touched, nor what cannot be removed.
 */
export async function sweepStore(store: string): Promise<void> {
  const repos = join(store, 'repos')
  for (const name of names(repos)) {
    if (leftBehind(name)) await discard(join(repos, name))
    if (name.endsWith('.git.new')) await sweepClone(join(repos, name))
  }
  for (const repository of names(join(store, 'trees'))) {
    const trees = join(store, 'trees', repository)
    for (const name of names(trees)) {
      if (leftBehind(name) || isDeadLease(trees, name)) await discard(join(trees, name))
    }
  }
}

/** A clone under its temporary name belongs to the holder of the repository's lock; without one it is nobody's. */
async function sweepClone(fresh: string): Promise<void> {
  const lock = fresh.replace(/\.git\.new$/, '.lock')
  const state = lockState(lock)
  if (state === 'alive' || state === 'elsewhere') return
  try {
    await withLock(lock, () => discard(fresh))
  } catch {} // a disk that takes no lock: another time
}

/**
 * Removes from a bare clone what a fetch left that was killed or had no space: received objects under temporary names, which git itself never removes, and
 * lock files, which would stop every later fetch. The repository's lock must be held: nobody else writes to the clone then.
 */
export function sweepFetch(bare: string): void {
  const objects = join(bare, 'objects')
  for (const name of names(objects)) if (/^(?:incoming-|tmp_)/.test(name)) discardTemporary(join(objects, name))
  for (const name of names(join(objects, 'pack'))) if (name.startsWith('tmp_')) discardTemporary(join(objects, 'pack', name))
  for (const folder of names(objects).filter(name => /^[0-9a-f]{2}$/.test(name)))
    for (const name of names(join(objects, folder))) if (name.startsWith('tmp_obj_')) discardTemporary(join(objects, folder, name))
  for (const name of names(bare)) if (name.endsWith('.lock')) discardTemporary(join(bare, name))
  for (const name of readdirSync(join(bare, 'refs'), { recursive: true }) as string[])
    if (name.endsWith('.lock')) discardTemporary(join(bare, 'refs', name))
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

async function discard(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {})
}
