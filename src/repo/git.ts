import { execa } from 'execa'
import { type SimpleGit, simpleGit } from 'simple-git'
import { hardening, localEnvironment, remoteEnvironment } from './git-config.js'
import { gitFailure } from './git-failure.js'
import { leashed } from './leash.js'

/**
 * Runs one git command on our own objects and gives its standard output as bytes.
 *
 * For commands that read (`ls-tree`, `cat-file`) and those that write files of a worktree. `input` is what the command gets on standard input, else nothing.
 * Throws GitFailure (E_STORE) with what git said, FatalError E_WRITE when the disk is full or cannot be written.
 */
export async function git(
  at: { bare?: string; cwd?: string; env?: Record<string, string> },
  args: string[],
  options: { input?: string | Uint8Array; signal?: AbortSignal } = {},
): Promise<Buffer> {
  const { command, env } = leashed('git')
  const [file, ...first] = command
  const result = await execa(
    file,
    [...first, ...hardening.flatMap(setting => ['-c', setting]), ...(at.bare ? ['--git-dir', at.bare] : []), ...args],
    {
      cwd: at.cwd ?? at.bare ?? '/',
      env: { ...localEnvironment(), ...at.env, ...env },
      extendEnv: false,
      encoding: 'buffer',
      reject: false,
      stripFinalNewline: false,
      maxBuffer: 1 << 30,
      ...(options.input === undefined ? { stdin: 'ignore' as const } : { input: options.input }),
      ...(options.signal ? { cancelSignal: options.signal, forceKillAfterDelay: 5000 } : {}),
    },
  )
  options.signal?.throwIfAborted()
  if (result.failed) {
    const said = Buffer.from(result.stderr ?? [])
      .toString()
      .trim()
    throw gitFailure(said || (result.shortMessage ?? 'git failed'), at)
  }
  return Buffer.from(result.stdout)
}

/**
 * simple-git for clone, fetch and the list of worktrees, with our constants only: no text of a model or of a record but a checked URL and full commit ids
 * reaches it. It takes our hardening for an attack unless each kind is allowed by name, and a git that was killed, or failed without a word, for a good one.
 */
export function administration(baseDir: string, signal: AbortSignal, remote?: { userGiven: boolean; gitConfig: boolean }): SimpleGit {
  const { command, env } = leashed('git')
  const environment = { ...(remote ? remoteEnvironment(remote) : localEnvironment()), ...env }
  return simpleGit({
    baseDir,
    binary: command as [string, string],
    config: [...hardening],
    abort: signal,
    errors: (error, { exitCode }) => error ?? unsaid(exitCode),
    allowEnvironment: Object.keys(environment),
    unsafe: {
      allowUnsafeHooksPath: true,
      allowUnsafeFsMonitor: true,
      allowUnsafeProtocolOverride: true,
      allowUnsafeConfigPaths: true,
      allowUnsafeTemplateDir: true,
      allowUnsafeSshCommand: true,
      allowUnsafeCustomBinary: true, // a path of ours may hold any character
    },
  }).env(environment)
}

function unsaid(exitCode: number | null): Error | undefined {
  if (exitCode === 0) return undefined
  return new Error(exitCode === null ? 'git was killed' : `git ended with status ${exitCode} and said nothing`)
}
