import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'

/** One look at one stage. */
export type Look = {
  /** Seconds since the pipe began. */
  at: number
  /** Resident size and the highest so far, KiB. */
  rss: number
  peak: number
  /** Descriptors that were open at the last look too, with the same thing behind them: those of a read or a child come and go. */
  descriptors: number
  /** All that were open, but for modules that were being loaded. */
  open: number
  /** Processor seconds so far: its own, and of its children that have ended. */
  cpu: number
  childCpu: number
  /** Processes below it. */
  children: number
}

export type Watched = {
  status: number | null
  stdout: string
  stderr: string
  seconds: number
  /** Looks at every stage by the name of its command, in the order of time. */
  stages: Map<string, Look[]>
  /** Children that had ended for five seconds: nobody waits for them. */
  zombies: number
}

type Options = {
  env: NodeJS.ProcessEnv
  everyMs: number
  /** Called at each look. */
  also?(): void
}

/** V8 takes what it may before it collects: what a process holds says little without a limit. Replaces the hooks that the test runner puts there. */
const nodeOptions = "export NODE_OPTIONS='--max-old-space-size=64 --max-semi-space-size=2'"

/** Runs a pipe of our commands in a shell, and looks at every stage and all processes below it at intervals (proc(5): status, stat, fd). */
export function watchPipe(line: string, { env, everyMs, also }: Options): Promise<Watched> {
  const child = spawn('/bin/bash', ['-o', 'pipefail', '-c', `${nodeOptions}; ${line}`], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const text = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk
    })
  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1000
  const stages: Watched['stages'] = new Map()
  const before: Before = new Map()
  let ended = new Map<number, number>()
  const zombies = new Set<number>()
  const timer = setInterval(() => {
    const all = processes()
    const now = seconds()
    const stillEnded: typeof ended = new Map()
    for (const { pid } of all.filter(({ pid, parent }) => parent === child.pid || pid === child.pid)) {
      const name = commandOf(pid)
      if (name === undefined) continue
      const below = descendants(all, pid)
      for (const { pid, state } of below) if (state === 'Z') stillEnded.set(pid, ended.get(pid) ?? now)
      const look = lookAt(pid, before)
      if (look) stages.set(name, [...(stages.get(name) ?? []), { at: now, ...look, children: below.length }])
    }
    ended = stillEnded
    for (const [pid, since] of ended) if (now - since > 5) zombies.add(pid)
    also?.()
  }, everyMs)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', status => {
      clearInterval(timer)
      resolve({ status, ...text, seconds: seconds(), stages, zombies: zombies.size })
    })
  })
}

/** What processes had open at the last look. */
type Before = Map<number, Set<string>>
type Process = { pid: number; parent: number; state: string }

function processes(): Process[] {
  return readdirSync('/proc').flatMap(name => {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined
    return stat ? [{ pid: Number(name), state: stat[0]!, parent: Number(stat[1]) }] : []
  })
}

function descendants(all: readonly Process[], pid: number): Process[] {
  const own = all.filter(({ parent }) => parent === pid)
  return [...own, ...own.flatMap(child => descendants(all, child.pid))]
}

/** Fields of /proc/PID/stat from the third on; the second, a name in parentheses, may hold anything. */
function statOf(pid: number): string[] | undefined {
  const stat = read(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** `cg-reward`; undefined before the shell has become Node, and after the end. */
function commandOf(pid: number): string | undefined {
  const [program = '', script = ''] = read(`/proc/${pid}/cmdline`)?.split('\0') ?? []
  return basename(program).startsWith('node') && script !== '' ? basename(script) : undefined
}

function lookAt(pid: number, before: Before): Omit<Look, 'at' | 'children'> | undefined {
  const status = read(`/proc/${pid}/status`)
  const stat = statOf(pid)
  const open = descriptorsOf(pid)
  if (!status || !stat || !open) return undefined
  const size = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
  const ticks = (field: number) => (Number(stat[field]) + Number(stat[field + 1])) / 100
  const known = before.get(pid)
  before.set(pid, open)
  const look = { rss: size('VmRSS'), peak: size('VmHWM'), cpu: ticks(11), childCpu: ticks(13) }
  if (known === undefined || !Object.values(look).every(Number.isFinite)) return undefined
  return {
    ...look,
    descriptors: [...open].filter(entry => known.has(entry)).length,
    open: [...open].filter(entry => !entry.endsWith('.js')).length,
  }
}

function descriptorsOf(pid: number): Set<string> | undefined {
  try {
    const open = new Set<string>()
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      try {
        open.add(`${fd} ${readlinkSync(`/proc/${pid}/fd/${fd}`)}`)
      } catch {
        // closed meanwhile
      }
    }
    return open
  } catch {
    return undefined
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
