import { RecordFault } from '../record/fault.js'
import { git } from './git.js'
import { withLock } from './lock.js'
import { type Access, reach } from './remote.js'
import type { Place } from './store.js'
import { sweepFetch } from './sweep.js'

/** A full commit id, in lower case. Throws RecordFault E_COMMIT for anything else: names and short ids mean something else tomorrow. */
export function fullCommit(id: string): string {
  const commit = id.toLowerCase()
  if (/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(commit)) return commit
  const hint = /^[0-9a-f]{4,63}$/.test(commit)
    ? 'it is shortened: write all 40 digits (git rev-parse ID prints them)'
    : 'write the 40 hex digits of a commit'
  throw new RecordFault('E_COMMIT', `base_commit ${JSON.stringify(id)} is not a full commit id: ${hint}`)
}

/**
 * The tree of a commit that is in the bare clone, fetched first if it has to be: by its id, and if the server refuses that or does not know it, all branches
 * and tags. Throws RecordFault E_COMMIT_MISSING, or E_FETCH, E_CLONE_TIMEOUT if the source cannot be reached, E_STORE if the clone is damaged, FatalError E_WRITE
 * if the disk is full.
 */
export async function treeOfCommit(place: Place, commit: string, access: Access): Promise<string> {
  const present = await presentTree(place, commit, access.signal)
  if (present) return present
  return withLock(
    place.lock,
    async () => {
      const now = await presentTree(place, commit, access.signal)
      if (now) return now
      sweepFetch(place.bare)
      const fetch = [
        'fetch',
        '--quiet',
        '--no-tags',
        '--no-write-fetch-head',
        '--no-auto-maintenance',
        '--no-recurse-submodules',
        '--',
        access.source.url,
      ]
      await reach(place.bare, [...fetch, commit], place.repo, access, 'E_FETCH').catch(refusedById)
      const byId = await presentTree(place, commit, access.signal)
      if (byId) return byId
      await reach(place.bare, [...fetch, '+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'], place.repo, access, 'E_FETCH')
      const all = await presentTree(place, commit, access.signal)
      if (all) return all
      throw new RecordFault(
        'E_COMMIT_MISSING',
        `${place.repo} has no commit ${commit}: ${access.source.shown} does not offer it; check base_commit, or give a --source that has it`,
      )
    },
    access.signal,
  )
}

/** The tree of a commit if it is in the bare clone, without asking the source. Throws RecordFault E_COMMIT_MISSING if the id is there but names no commit. */
export async function presentTree(place: Place, commit: string, signal?: AbortSignal): Promise<string | undefined> {
  // Two answers from one process: `ID commit SIZE`, `ID tree SIZE`. The ids go in as input, so nothing in them can be an option.
  const out = await git({ bare: place.bare }, ['cat-file', '--batch-check'], {
    input: `${commit}\n${commit}^{tree}\n`,
    ...(signal ? { signal } : {}),
  })
  const [object, tree] = out
    .toString()
    .split('\n')
    .map(line => line.split(' '))
  if (object?.[1] === 'commit' && tree?.[1] === 'tree') return tree[0]
  if (object?.[1] === 'missing') return undefined
  throw new RecordFault('E_COMMIT_MISSING', `${place.repo}: ${commit} is a ${object?.[1]}, not a commit: check base_commit`)
}

function refusedById(error: unknown): void {
  if (!(error instanceof RecordFault) || error.code !== 'E_FETCH') throw error
}
