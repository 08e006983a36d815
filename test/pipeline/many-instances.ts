import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { git } from '../unit/repo/make-repository.js'

/** A repository with many commits, each of which changes what one function returns. */
export type ManyCommits = { repo: string; commits: string[] }

const parts = 8
const functions = 12

/** Makes `OWNER/NAME` under `mirror` by git-fast-import(1): thousands of commits in a second. The same arguments give the same ids. */
export function makeManyCommits(mirror: string, repo: string, count: number): ManyCommits {
  const dir = join(mirror, repo)
  mkdirSync(dir, { recursive: true })
  git(dir, 'init', '-q', '--bare', '-b', 'main')
  execFileSync('git', ['fast-import', '--quiet'], { cwd: dir, input: history(repo, count), stdio: ['pipe', 'ignore', 'inherit'] })
  return { repo, commits: git(dir, 'rev-list', '--reverse', 'main').trim().split('\n') }
}

function history(repo: string, count: number): string {
  const commits = Array.from({ length: count }, (_, k) => {
    const changed = k === 0 ? Array.from({ length: parts }, (_, part) => part) : [k % parts]
    const files = changed.map(part => `M 100644 inline lib/part_${part}.py\n${data(source(repo, part, k))}`)
    return `commit refs/heads/main\ncommitter A <a@example.org> ${1_700_000_000 + k} +0000\n${data(`change ${k}`)}${files.join('')}\n`
  })
  return commits.join('')
}

const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`

/** Line 3 f + 2 is what function f of a part returns. */
function source(repo: string, part: number, version: number): string {
  const body = Array.from({ length: functions }, (_, f) => `def ${nameOf(part, f)}(value):\n    return value + ${(version >> 3) + f}\n\n`)
  return `${body.join('')}# part ${part} of ${repo}\nOWNER = "${repo}"\n`
}

const nameOf = (part: number, f: number) => `adjust_${'abcdefgh'[part]}_${f}`

/**
 * SWE-bench-like rows about the commits, row n about commit n / count of each of the repositories in turn: different in text, each with the patch that mends it.
 *
 * Of ten issues seven name the function, two the module alone, and one has a message that only a regular expression finds. Every fourth patch only inserts, so
 * that its target needs the file.
 */
export function* manyInstances(repositories: readonly ManyCommits[], count: number): Generator<string> {
  for (let n = 0; n < count; n++) {
    const { repo, commits } = repositories[n % repositories.length]!
    const base_commit = commits[Math.floor((n * commits.length) / count)]!
    const part = n % parts
    const f = (n >> 3) % functions
    yield `${JSON.stringify({
      instance_id: `${repo.replace('/', '__')}-${n}`,
      repo,
      base_commit,
      problem_statement: issue(n, part, f),
      patch: patch(n, part, f),
    })}\n`
  }
}

function issue(n: number, part: number, f: number): string {
  if (n % 10 === 9) return `Report ${n}: it ends with\n\n    ValueError: the sum (of part ${part}) is wrong\n\nsince the last release.`
  if (n % 10 >= 7) return `Report ${n}: what lib/part_${part} gives is too large by ${n % 17}.`
  return `Report ${n}: \`${nameOf(part, f)}(${n})\` is too large by ${n % 17}.`
}

function patch(n: number, part: number, f: number): string {
  const file = `lib/part_${part}.py`
  const head = `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n`
  const line = 3 * f + 2
  if (n % 4 === 3) return `${head}@@ -${line},0 +${line + 1} @@\n+    # ${n}\n`
  return `${head}@@ -${line} +${line} @@\n-    return value\n+    return value - ${n % 17}\n`
}
