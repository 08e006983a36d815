/**
 * What every git command of ours runs with. A repository cannot make git run a program: hooks, file system monitor and the ext transport are off, filters
 * are off through `info/attributes`, system and user configuration is not read (`--git-config` lets a clone read it). What is fetched stays a pack, which
 * appears by one rename: unpacked, a fetch that was cut (killed, or no space) would leave a commit without its files, which looks as if it were there.
 */
export const hardening: readonly string[] = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.attributesFile=/dev/null',
  'protocol.ext.allow=never',
  'fetch.unpackLimit=1',
]

/** `info/attributes`, which beats those in the tree: files get the bytes of their blobs (gitattributes(5)). */
export const infoAttributes = '* -text !eol -ident -filter !working-tree-encoding !export-subst !export-ignore !diff\n'

/** The whole `config` of a bare clone. Links are written as text files; nothing is collected or fetched behind our back. */
export function ourConfig(objectFormat: 'sha1' | 'sha256'): string {
  const sha256 = objectFormat === 'sha256'
  return `[core]
	repositoryformatversion = ${sha256 ? 1 : 0}
	bare = true
	filemode = true
	symlinks = false
	autocrlf = false
	protectNTFS = false
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
${sha256 ? '[extensions]\n\tobjectFormat = sha256\n' : ''}[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[fetch]
	recurseSubmodules = false
`
}

/** Environment of git on our own objects: built from scratch, no prompts, no user configuration, names as bytes. */
export function localEnvironment(): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_LAZY_FETCH: '1',
    ...kept('TMPDIR'),
  }
}

/**
 * Environment of clone and fetch: proxies and certificates of the caller in addition; for a source that the user named also the home directory and the ssh
 * agent; with `--git-config` the user's and the system's configuration.
 */
export function remoteEnvironment({ userGiven, gitConfig }: { userGiven: boolean; gitConfig: boolean }): Record<string, string> {
  const { GIT_CONFIG_NOSYSTEM, GIT_CONFIG_GLOBAL, ...rest } = localEnvironment()
  const off = { GIT_CONFIG_NOSYSTEM: GIT_CONFIG_NOSYSTEM!, GIT_CONFIG_GLOBAL: GIT_CONFIG_GLOBAL! }
  return {
    ...rest,
    ...(gitConfig ? kept('XDG_CONFIG_HOME') : off),
    ...kept('HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy', 'NO_PROXY', 'no_proxy'),
    ...kept('SSL_CERT_FILE', 'SSL_CERT_DIR', 'GIT_SSL_CAINFO'),
    ...(userGiven || gitConfig ? kept('HOME', 'SSH_AUTH_SOCK', 'USER', 'LOGNAME') : {}),
    // Neither a passphrase nor a host key may be asked for: nobody may be there to answer. A dead connection ends by itself.
    ...(gitConfig ? {} : { GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o ConnectTimeout=60 -o ServerAliveInterval=30' }),
  }
}

function kept(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]!]])))
}
