import { rmSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeDirectory } from '../record/make-directory.js'
import { writing } from '../record/write-failure.js'
import { git } from './git.js'
import { infoAttributes, ourConfig } from './git-config.js'
import { withLock } from './lock.js'
import { type Access, reach } from './remote.js'
import { isCloned, type Place } from './store.js'
import { writeWhole } from './write-whole.js'

/**
 * Makes the bare clone of a repository, once, however many processes ask for it; true if it was there already.
 *
 * Only objects and refs are taken over: configuration and attributes are ours, hooks are not copied, the source is not remembered. It is built under a
 * temporary name, so that an interrupted clone is never taken for a finished one. Throws RecordFault E_CLONE, E_CLONE_TIMEOUT, E_STORE,
 * FatalError E_WRITE: nothing is left of it then.
 */
export async function bareClone(place: Place, access: Access): Promise<boolean> {
  if (isCloned(place)) return true
  return withLock(
    place.lock,
    async () => {
      if (isCloned(place)) return true
      const repos = dirname(place.bare)
      const fresh = `${place.bare}.new`
      makeDirectory(repos)
      await writing(fresh, () => rm(fresh, { recursive: true, force: true }))
      const clone = ['clone', '--bare', '--quiet', '--template=', '--', access.source.url, fresh]
      await reach(repos, clone, place.repo, access, 'E_CLONE')
      const format = (await git({ bare: fresh }, ['rev-parse', '--show-object-format'])).toString().trim()

      makeDirectory(join(fresh, 'info'))
      writing(fresh, () => rmSync(join(fresh, 'hooks'), { recursive: true, force: true }))
      writeWhole(join(fresh, 'config'), ourConfig(format === 'sha256' ? 'sha256' : 'sha1'), { durable: true })
      writeWhole(join(fresh, 'info', 'attributes'), infoAttributes, { durable: true })
      writeWhole(join(fresh, 'cg.json'), `${JSON.stringify({ v: 1, repo: place.repo })}\n`, { durable: true })
      await writing(place.bare, () => rename(fresh, place.bare))
      return false
    },
    access.signal,
  )
}
