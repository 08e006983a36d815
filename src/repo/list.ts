import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Ready, readMark } from './checkout.js'
import type { Holder } from './holder.js'
import { leasesOf } from './lease.js'
import { type Place, placeOf } from './store.js'

/** A worktree in the store. `ready` is undefined for one whose checkout was interrupted; of one whose directory vanished the mark may still be there. */
export type ListedTree = { place: Place; path: string; commit: string; ready: Ready | undefined; lastUse: Date; leases: Holder[] }

/** The worktrees in a store, by repository and commit. A store that does not exist has none. */
export function listTrees(store: string): ListedTree[] {
  return clonesIn(store).flatMap(place => commitsIn(place.trees).map(commit => listed(place, commit)))
}

/** The bare clones in a store, by name. */
export function clonesIn(store: string): Place[] {
  return names(join(store, 'repos'))
    .filter(name => name.endsWith('.git') && existsSync(join(store, 'repos', name, 'cg.json')))
    .map(name => placeOf(store, name.slice(0, -'.git'.length).replaceAll('+', '/')))
}

function listed(place: Place, commit: string): ListedTree {
  const path = join(place.trees, commit)
  const ready = readMark(path)
  return {
    place,
    path,
    commit,
    ready,
    lastUse: statSync(existsSync(path) && !ready ? path : `${path}.ready`).mtime,
    leases: leasesOf(path),
  }
}

function commitsIn(trees: string): string[] {
  return [...new Set(names(trees).flatMap(name => /^([0-9a-f]+)(?:\.ready)?$/.exec(name)?.[1] ?? []))]
}

function names(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).sort() : []
}
