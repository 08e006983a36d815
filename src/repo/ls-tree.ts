import { git } from './git.js'
import { shownName } from './shown-name.js'

/** A tracked regular file: its name as shown (see `shownName`), the id and size of its blob. */
export type TrackedFile = { path: string; oid: string; size: number; executable: boolean }

/**
 * The regular files of a tree in bytewise order of their names (git-ls-tree(1), `-z`).
 *
 * Links and submodules are left out, and so are names that git would not check out or that could leave the tree: empty, `.`, `..` and `.git` parts, in any
 * case. Throws GitFailure if the tree is not there.
 */
export async function listTree(bare: string, tree: string, signal?: AbortSignal): Promise<TrackedFile[]> {
  const out = await git({ bare }, ['ls-tree', '-r', '-z', '-l', '--full-tree', tree], signal ? { signal } : {})
  const files: TrackedFile[] = []
  for (let at = 0; at < out.length; ) {
    const end = out.indexOf(0, at)
    // <mode> SP <type> SP <oid> SP <size, padded> TAB <name>
    const tab = out.indexOf(9, at)
    const [mode, , oid, size] = out.toString('latin1', at, tab).split(/ +/) as [string, string, string, string]
    const raw = out.subarray(tab + 1, end)
    at = end + 1
    if ((mode !== '100644' && mode !== '100755') || !staysInside(raw)) continue
    files.push({ path: shownName(raw), oid, size: Number(size), executable: mode === '100755' })
  }
  return files
}

function staysInside(raw: Buffer): boolean {
  return raw
    .toString('latin1')
    .split('/')
    .every(part => part !== '' && part !== '.' && part !== '..' && part.toLowerCase() !== '.git')
}
