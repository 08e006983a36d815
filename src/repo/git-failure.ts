import { FatalError, RecordFault } from '../record/fault.js'
import { writeCause } from '../record/write-failure.js'

/** git failed on objects or files of ours: most likely the clone is damaged. */
export class GitFailure extends RecordFault {
  constructor(
    /** Its own words. */
    readonly said: string,
    bare: string,
  ) {
    super('E_STORE', `${bare}: git failed (${telling(said)}): if it is damaged, remove it and run cg-worktree again`)
    this.name = 'GitFailure'
  }
}

/** How reasons read in git's messages, which it has from strerror(3) in the C locale, but for one of its own (csum-file.c). */
const reasons: [words: string, code: string][] = [
  ['No space left on device', 'ENOSPC'],
  ['Out of diskspace', 'ENOSPC'],
  ['Disk quota exceeded', 'EDQUOT'],
  ['Read-only file system', 'EROFS'],
  ['Input/output error', 'EIO'],
]

/**
 * The FatalError E_WRITE that git's words come to when it could not write to our disk, undefined when they say something else. What `remote:` lines say is
 * of another machine's disk; that a file of a checkout cannot be written git says without a reason.
 */
export function diskFailure(said: string, place: string): FatalError | undefined {
  const lines = said.split('\n').filter(line => !line.startsWith('remote:'))
  for (const [words, code] of reasons)
    if (lines.some(line => line.includes(words))) return new FatalError('E_WRITE', `${place}: ${writeCause(code)}`)
  const unwritten = lines.find(line => /unable to write file/.test(line))
  if (unwritten === undefined) return undefined
  return new FatalError('E_WRITE', `${place}: ${telling(unwritten)}: is the disk full? free some space`)
}

/** Do git's words say that our own clone is damaged? Those of `remote:` lines are about the source. */
export function isDamage(said: string): boolean {
  const damage =
    /^(?:error|fatal): .*(?:packfile .*\.(?:pack|idx)|is corrupt|inflate: |bad object|loose object|unable to read (?:sha1 file|tree|[0-9a-f]{40}))/
  return said.split('\n').some(line => damage.test(line))
}

/** What to throw when a command on our own clone (`bare`) or a worktree of it (`cwd`) failed. */
export function gitFailure(said: string, { bare, cwd }: { bare?: string; cwd?: string }): Error {
  const clone = (bare ?? cwd ?? 'git').replace(/\/worktrees\/[^/]*$/, '')
  return diskFailure(said, cwd ?? clone) ?? new GitFailure(said, clone)
}

/** What is wrong in one line: git's `fatal:` and `error:` lines; advice of its own follows them. */
export function telling(said: string): string {
  const lines = said.split('\n')
  const found = lines.filter(line => /^(fatal|error|ssh|remote): */.test(line)).map(line => line.replace(/^(fatal|error): /, '').trim())
  return (found.length > 0 ? found : lines.filter(Boolean)).slice(0, 3).join('; ').slice(0, 400)
}
