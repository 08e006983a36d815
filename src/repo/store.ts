import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { RecordFault } from '../record/fault.js'
import { infoAttributes, ourConfig } from './git-config.js'

/**
 * Where one repository lives in the store:
 *
 *     STORE/repos/OWNER+NAME.git              bare clone: objects, refs, our configuration; `cg.json` says that it is complete
 *     STORE/repos/OWNER+NAME.lock             held while its refs or its list of worktrees change
 *     STORE/trees/OWNER+NAME/COMMIT           files of one commit
 *     STORE/trees/OWNER+NAME/COMMIT.ready     they are complete; its time is the last use
 *     STORE/trees/OWNER+NAME/COMMIT.lease.*   a process that uses them
 */
export type Place = { repo: string; bare: string; trees: string; lock: string }

/** The store's directory: `--store`, else $CG_STORE, else the XDG data directory. */
export function storeDir(option?: string): string {
  const data = process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share')
  return resolve(option || process.env.CG_STORE || join(data, 'cg'))
}

/** Throws RecordFault E_REPO for a name that is not `OWNER/NAME` (or a plain `NAME`) of letters, digits, `.`, `_` and `-`. */
export function placeOf(store: string, repo: string): Place {
  const parts = repo.split('/')
  if (!parts.every(part => /^[A-Za-z0-9_.][A-Za-z0-9_.-]*$/.test(part) && !/^\.+$/.test(part)))
    throw new RecordFault('E_REPO', `repo ${JSON.stringify(repo)} is not a repository name: write OWNER/NAME`)
  return place(store, parts.join('+'))
}

/** The place that a bare clone belongs to; the store is where it lies. */
export function placeOfBare(bare: string): Place {
  return place(dirname(dirname(resolve(bare))), basename(bare, '.git'))
}

/**
 * Is the bare clone there, complete, and made by us? Its configuration must be, byte for byte, one that we write: git runs programs that a configuration
 * names, so a directory that somebody hands us is never used. Throws RecordFault E_STORE for one that is not ours.
 */
export function isCloned({ bare }: Place): boolean {
  if (!existsSync(join(bare, 'cg.json'))) return false
  const config = read(join(bare, 'config'))
  const known = config === ourConfig('sha1') || config === ourConfig('sha256')
  if (!known || read(join(bare, 'info', 'attributes')) !== infoAttributes || existsSync(join(bare, 'config.worktree')))
    throw new RecordFault(
      'E_STORE',
      `${bare} was not made by this version of cg-worktree, or was changed: remove it and run cg-worktree again`,
    )
  return true
}

function place(store: string, name: string): Place {
  const repos = join(store, 'repos')
  return {
    repo: name.replaceAll('+', '/'),
    bare: join(repos, `${name}.git`),
    trees: join(store, 'trees', name),
    lock: join(repos, `${name}.lock`),
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
