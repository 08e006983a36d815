import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { writing } from '../record/write-failure.js'
import { unlist } from './checkout.js'
import { leasesOf } from './lease.js'
import type { ListedTree } from './list.js'
import { withLock } from './lock.js'

/**
 * Removes a worktree unless somebody uses it; false if so. The bare clone keeps its objects: the worktree can be made again without a network.
 *
 * The ready mark goes first and comes back if a lease has appeared meanwhile: who takes a lease looks for the mark afterwards, so one of the two sees the other.
 */
export async function pruneTree({ place, path }: Pick<ListedTree, 'place' | 'path'>): Promise<boolean> {
  const gone = await withLock(`${path}.lock`, () =>
    withLock(place.lock, async () => {
      const mark = `${path}.ready`
      const aside = `${path}.unmarked`
      const complete = existsSync(mark)
      if (complete) await writing(mark, () => rename(mark, aside))
      if (leasesOf(path).length > 0) {
        if (complete) await writing(mark, () => rename(aside, mark))
        return undefined
      }
      return { files: await unlist(place, path) }
    }),
  )
  if (gone?.files) await rm(gone.files, { recursive: true, force: true })
  return gone !== undefined
}
