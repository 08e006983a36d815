import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { RecordFault } from '../record/fault.js'
import { administration } from './git.js'
import { diskFailure, GitFailure, isDamage, telling } from './git-failure.js'
import { type Source, withoutPassword } from './source.js'

/** How long git and its helpers may take to end after they were told to, in ms: the leash kills them after 3 s. */
const endingMs = 5000

/** How clone and fetch reach a source. */
export type Access = { source: Source; timeoutMs: number; gitConfig: boolean; signal?: AbortSignal }

/**
 * Runs one clone or fetch with a limit on its whole time (git's own limits are on silence).
 *
 * Throws RecordFault E_SOURCE for a path that is not there, E_CLONE_TIMEOUT after `timeoutMs`, FatalError E_WRITE when our disk is full, GitFailure E_STORE when
 * the clone that is fetched into is damaged, RecordFault `code` with git's last words otherwise.
 */
export async function reach(baseDir: string, args: string[], repo: string, access: Access, code: 'E_CLONE' | 'E_FETCH'): Promise<void> {
  const { url } = access.source
  if (isAbsolute(url) && !existsSync(url)) throw new RecordFault('E_SOURCE', `${repo}: there is no ${url}: check --source`)
  const stop = new AbortController()
  let ending: NodeJS.Timeout | undefined
  const overdue = setTimeout(() => stop.abort(new Error('overdue')), access.timeoutMs)
  const onAbort = () => stop.abort(access.signal?.reason)
  access.signal?.addEventListener('abort', onAbort, { once: true })
  try {
    access.signal?.throwIfAborted()
    const lingering = new Promise<never>((_, reject) =>
      stop.signal.addEventListener(
        'abort',
        () => {
          ending = setTimeout(() => reject(stop.signal.reason), endingMs)
        },
        { once: true },
      ),
    )
    const ended = administration(baseDir, stop.signal, { userGiven: access.source.userGiven, gitConfig: access.gitConfig }).raw(args)
    // Who comes next may find nobody writing here any more; but a helper of git that no leash holds may keep the pipe for ever.
    await Promise.race([ended, lingering])
  } catch (error) {
    access.signal?.throwIfAborted()
    const { shown } = access.source
    if (stop.signal.aborted)
      throw new RecordFault(
        'E_CLONE_TIMEOUT',
        `${repo}: ${shown} took longer than ${access.timeoutMs / 1000} s: raise --clone-timeout, or clone it yourself and give --source PATH`,
        true,
      )
    const said = withoutPassword(error instanceof Error ? error.message : String(error))
    if (code === 'E_FETCH' && isDamage(said)) throw new GitFailure(said, baseDir)
    throw diskFailure(said, baseDir) ?? new RecordFault(code, `${repo}: cannot read ${shown}: ${telling(said)}: ${advice(access)}`, true)
  } finally {
    clearTimeout(overdue)
    clearTimeout(ending)
    access.signal?.removeEventListener('abort', onAbort)
  }
}

function advice({ source, gitConfig }: Access): string {
  if (!source.userGiven) return 'check the name, or say where it is with --source'
  return gitConfig || isAbsolute(source.url)
    ? 'check --source'
    : 'check --source; if your git configuration is needed to reach it, add --git-config'
}
