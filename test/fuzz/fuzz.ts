import { fork } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Progress } from './worker.js'

/** Without a sign of life for so long an input is one that takes too long: thousands take a second, and the machine may be busy. */
const patienceMs = 60_000

export type Finding = { words: string; file: string }
export type Report = { executions: number; outcomes: number; finding?: Finding }

/** For some time or number of inputs, or one input of a file. */
export type Work = { seconds: number; seed: number } | { inputs: number; seed: number } | { input: string }

/**
 * Fuzzes a target in a child process: an input that breaks a promise, ends the process, or takes longer than a minute is the finding. Its input is kept in
 * `build/fuzz/TARGET/`.
 */
export async function fuzz(target: string, work: Work, note: (progress: Progress) => void = () => {}): Promise<Report> {
  const dir = resolve('build/fuzz', `${target}-${process.pid}`)
  mkdirSync(dir, { recursive: true })
  try {
    const args = 'input' in work ? ['input', work.input] : 'seconds' in work ? ['seconds', work.seconds] : ['inputs', work.inputs]
    const seed = 'seed' in work ? work.seed : 0
    const { last, ended } = await child([target, dir, ...args.map(String), String(seed)], note)
    const words = last.found ?? ended
    if (words === undefined) return last
    const found = ['found', 'current'].map(name => join(dir, name)).find(existsSync)
    const source = found ?? ('input' in work ? work.input : undefined)
    return { ...last, finding: { words, file: source === undefined ? 'no input' : kept(target, source) } }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Runs a worker. `ended` says how it came to an end that is not its own. */
function child(args: string[], note: (progress: Progress) => void): Promise<{ last: Progress; ended?: string }> {
  const worker = fork(resolve('build/js/test/fuzz/worker.js'), args, {
    execArgv: ['--no-warnings'],
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  let last: Progress = { executions: 0, outcomes: 0 }
  let hung = false
  const watch = () => setTimeout(() => (hung = worker.kill('SIGKILL')), patienceMs)
  let timer = watch()
  worker.on('message', (progress: Progress) => {
    clearTimeout(timer)
    timer = watch()
    last = progress
    note(progress)
  })
  return new Promise((done, fail) => {
    worker.on('error', fail)
    worker.on('exit', (status, signal) => {
      clearTimeout(timer)
      if (hung) done({ last, ended: `no end after ${patienceMs / 1000} s` })
      else if (status !== 0) done({ last, ended: `the process ended with ${signal ?? `status ${status}`}` })
      else done({ last })
    })
  })
}

/** Keeps an input for later, under a name of its content. */
function kept(target: string, source: string): string {
  const dir = join('build/fuzz', target)
  mkdirSync(dir, { recursive: true })
  const file = join(dir, `found-${fnv(readFileSync(source))}`)
  copyFileSync(source, file)
  return file
}

function fnv(bytes: Buffer): string {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}
