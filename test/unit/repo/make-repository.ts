import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Files of a commit; null removes one. What is not named stays as it was. */
export type Change = Record<string, string | Buffer | null>

/** A directory of its own for a test, removed at its end. */
export function scratch(t: { teardown(work: () => void): unknown }): string {
  const dir = mkdtempSync(join(tmpdir(), 'cg-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Makes a repository with one commit a change, dates and author fixed, and gives the commits' ids. */
export function makeRepository(dir: string, changes: Change[]): string[] {
  mkdirSync(dir, { recursive: true })
  git(dir, 'init', '-q', '-b', 'main')
  return changes.map(change => commitChange(dir, change))
}

export function commitChange(dir: string, change: Change): string {
  for (const [name, content] of Object.entries(change)) {
    const file = join(dir, name)
    mkdirSync(dirname(file), { recursive: true })
    if (content === null) rmSync(file)
    else writeFileSync(file, content)
  }
  git(dir, '-c', 'core.autocrlf=false', 'add', '-A')
  git(dir, 'commit', '-q', '--allow-empty', '-m', 'change')
  return git(dir, 'rev-parse', 'HEAD').trim()
}

/** Runs git as a user with no configuration would, at a fixed time. */
export function git(dir: string, ...args: string[]): string {
  return gitWith(dir, undefined, ...args)
}

export function gitWith(dir: string, input: string | Buffer | undefined, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd: dir,
    input,
    env: { PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', ...person },
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 1 << 28,
  }).toString()
}

const person = {
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_AUTHOR_DATE: '2024-01-01T00:00:00Z',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.org',
  GIT_COMMITTER_DATE: '2024-01-01T00:00:00Z',
}

/** How `prepare` is called when nothing else is said. */
export function options(store: string, source?: string) {
  return { store, ...(source === undefined ? {} : { source }), checkout: true, timeoutMs: 60_000, gitConfig: false }
}
