import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { git } from './git.js'
import { GitFailure, telling } from './git-failure.js'
import type { ListedTree } from './list.js'
import { listTree, type TrackedFile } from './ls-tree.js'
import { nameBytes } from './shown-name.js'
import { isCloned } from './store.js'

/** What is wrong with a worktree, in words; empty if every tracked file has exactly the bytes of its blob. Files that are not tracked do not matter: no tool sees them. */
export async function verifyTree(listed: ListedTree): Promise<string[]> {
  const { place, path, commit, ready } = listed
  if (!isCloned(place)) return [`its bare clone ${place.bare} is not there`]
  if (!ready) return ['its checkout was interrupted']
  let files: TrackedFile[]
  try {
    const tree = (await git({ bare: place.bare }, ['rev-parse', '--verify', '--end-of-options', `${commit}^{tree}`])).toString().trim()
    if (tree !== ready.tree) return [`its mark says tree ${ready.tree}, the commit has ${tree}`]
    files = await listTree(place.bare, tree)
  } catch (error) {
    if (error instanceof GitFailure)
      return [`its commit cannot be read (${telling(error.said)}): remove ${place.bare} and run cg-worktree again`]
    throw error
  }
  const problems: string[] = []
  for (const file of files) {
    const wrong = await wrongFile(path, file)
    if (wrong) problems.push(`${file.path} ${wrong}`)
  }
  return problems
}

async function wrongFile(root: string, file: TrackedFile): Promise<string | undefined> {
  const at = Buffer.concat([Buffer.from(join(root, '/')), nameBytes(file.path)])
  const stat = lstatSync(at, { throwIfNoEntry: false })
  if (!stat) return 'is missing'
  if (!stat.isFile()) return 'is not a regular file'
  return blobId(await readFile(at), file.oid.length === 64 ? 'sha256' : 'sha1') === file.oid ? undefined : 'is changed'
}

/** Object id of a blob: hash of `blob SIZE NUL` and the bytes (gitformat-pack(5), "object id"). */
export function blobId(bytes: Uint8Array, algorithm: 'sha1' | 'sha256'): string {
  return createHash(algorithm).update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
}
