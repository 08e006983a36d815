import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'

export type Result = { stdout: string; stderr: string; status: number | null; signal: NodeJS.Signals | null }

/** The test command, through the real runner. */
export const echo = resolve('build/js/test/pipeline/echo.js')

/**
 * Node, before a script and its arguments. tap gives every child a NODE_OPTIONS, whatever its environment says, with a loader that cannot take a stub without an
 * extension: it is taken away again on the other side.
 */
export const plainNode: readonly [string, ...string[]] = ['/bin/sh', '-c', 'unset NODE_OPTIONS; exec "$0" "$@"', process.execPath]

type Heard = { done: Promise<Result>; heard(): Pick<Result, 'stdout' | 'stderr'> }

type Options = { env?: NodeJS.ProcessEnv; cwd?: string; input?: string | Buffer | null }

/** Starts a script of ours under Node with pipes all around. `input: null` leaves standard input open. */
export function start(
  script: string,
  args: readonly string[],
  { env = {}, cwd, input = '' }: Options = {},
): { child: ChildProcess; done: Promise<Result> } {
  const child = spawn(plainNode[0], [...plainNode.slice(1), script, ...args], { cwd, env: { ...process.env, NO_COLOR: '1', ...env } })
  const { done } = collect(child)
  child.stdin!.on('error', () => {})
  if (input !== null) child.stdin!.end(input)
  return { child, done }
}

/** Runs a script of ours to its end. */
export function run(script: string, args: readonly string[], options: Options = {}): Promise<Result> {
  return start(script, args, options).done
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: it is bash that expands it
export const echoStatuses = 'echo "${PIPESTATUS[*]}"'

/** Runs a shell line; `$ECHO` is the test command. */
export function shell(line: string, cwd?: string): Promise<Result> {
  const env = { ...process.env, ECHO: `${process.execPath} ${echo}` }
  return collect(spawn('/bin/bash', ['-o', 'pipefail', '-c', line], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })).done
}

/** Starts a shell line in a process group of its own; the test runner's hooks are not for what it runs. */
export function startGroup(line: string, env: NodeJS.ProcessEnv): Heard & { group: number } {
  const child = spawn('/bin/bash', ['-o', 'pipefail', '-c', `unset NODE_OPTIONS; ${line}`], {
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { group: child.pid!, ...collect(child) }
}

/** What a child says, to its end; `heard` is what it has said so far. */
export function collect(child: ChildProcess): Heard {
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]!.setEncoding('utf8').on('data', text => {
      said[name] += text
    })
  const done = new Promise<Result>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, signal) => resolve({ ...said, status, signal }))
  })
  return { done, heard: () => said }
}

/** A directory that goes with its test, and a way to put files into it. */
export function scratch(t: Test): { dir: string; file(name: string, text: string | Buffer): string } {
  const dir = mkdtempSync(join(tmpdir(), 'cg-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return {
    dir,
    file: (name, text) => {
      const path = join(dir, name)
      writeFileSync(path, text)
      return path
    },
  }
}

/** SWE-bench-like rows i0, i1 …, one a line. */
export function rows(count: number, from = 0): string {
  return Array.from(
    { length: count },
    (_, n) => `${JSON.stringify({ instance_id: `i${n + from}`, repo: 'o/r', base_commit: 'c', problem_statement: 'p' })}\n`,
  ).join('')
}

/** Records of an output. */
export function records(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}
