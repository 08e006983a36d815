import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { FatalError } from '../record/fault.js'
import { endAtOnce, leashed } from '../repo/leash.js'

/** Name and version of the search engine: part of the toolset's digest. */
export const engine = 'ripgrep 15.0.0'

/** Longer patterns are refused (in code units). */
export const longestPattern = 1000

export type RipgrepQuery = {
  /** Names of regular files below it, in the order in which they are to be searched. */
  root: string
  names: Buffer[]
  pattern: string
  ignoreCase: boolean
  context: number
  timeoutMs: number
}

/** How a search ended; `failed` says what ripgrep said. */
export type RipgrepEnd =
  | { kind: 'done' }
  | { kind: 'timeout' }
  | { kind: 'bad-pattern'; message: string }
  | { kind: 'failed'; message: string }

/** Bytes of names that fit one command line; longer lists, and names that are no UTF-8, go through xargs. */
const oneCommand = 100_000
/** Address space of a search, in KiB: a search that needs more ends with an error, not with the machine. */
const addressSpace = 1 << 20

const running = new Set<number>()
process.once('exit', () => {
  for (const pid of running) endAtOnce(pid)
})

/**
 * Searches the named files with ripgrep and hands each line of its JSON output (without the newline) to `line`, in the order of the names.
 *
 * Every byte is text (`-a`, no encoding detection): what is binary is the caller's decision. One thread, so the order is the same everywhere. The pattern is
 * only ever an argument after `-e`; the environment is empty, standard input closed, the address space limited; the search is killed at the time limit, which
 * counts from here, when `signal` is aborted (then it throws), and when this process ends, however it does.
 */
export async function ripgrep(query: RipgrepQuery, line: (json: Buffer) => void, signal?: AbortSignal): Promise<RipgrepEnd> {
  signal?.throwIfAborted()
  const options = ['--no-config', '--json', '--text', '--encoding', 'none', '--no-mmap', '--threads', '1', '--no-ignore']
  const search = [
    rgPath(),
    ...options,
    '--context',
    String(query.context),
    query.ignoreCase ? '--ignore-case' : '--case-sensitive',
    '-e',
    query.pattern,
    '--',
  ]
  const names = query.names.map(name => (name.length === 1 && name[0] === 0x2d ? Buffer.from('./-') : name))
  const direct = names.reduce((sum, name) => sum + name.length + 1, 0) <= oneCommand && names.every(isUtf8)
  const [program, ...args] = direct ? [...search, ...names.map(name => name.toString())] : ['xargs', '-0', '-s', '500000', ...search]
  const { command, env } = leashed(program!, { addressSpaceKib: addressSpace })
  const [file, ...first] = command

  const child = spawn(file, [...first, ...args], {
    cwd: query.root,
    env: { PATH: '/usr/bin:/bin', ...env },
    stdio: [direct ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const { pid } = child
  if (pid !== undefined) running.add(pid)
  if (child.stdin) {
    child.stdin.on('error', () => {})
    child.stdin.end(Buffer.concat(names.flatMap(name => [name, Buffer.from([0])])))
  }
  let said = ''
  child.stderr!.on('data', chunk => {
    if (said.length < 10_000) said += chunk
  })
  child.stdout!.on('data', lineSplitter(line))

  let overdue = false
  const timer = setTimeout(() => {
    overdue = true
    if (pid !== undefined) endAtOnce(pid)
  }, query.timeoutMs)
  const onAbort = () => pid !== undefined && endAtOnce(pid)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    const status = await new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject))
    signal?.throwIfAborted()
    if (overdue) return { kind: 'timeout' }
    if (isPatternError(said)) return { kind: 'bad-pattern', message: patternError(said) }
    // 0 found, 1 not found; 123 is what xargs makes of 1.
    const fine = said === '' && (status === 0 || status === 1 || (!direct && status === 123))
    return fine ? { kind: 'done' } : { kind: 'failed', message: said.trim().split('\n')[0] || `ended with status ${status}` }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    if (pid !== undefined) running.delete(pid)
  }
}

let found: string | undefined

/** The binary of the npm package; it comes as a platform package, without a download. */
export function rgPath(): string {
  if (found) return found
  const platform = `@vscode/ripgrep-${process.platform}-${process.arch}`
  try {
    // Resolved from the package that depends on it.
    const require = createRequire(createRequire(import.meta.url).resolve('@vscode/ripgrep'))
    found = require.resolve(`${platform}/bin/rg`)
    return found
  } catch {
    throw new FatalError(
      'E_RIPGREP',
      `the search engine is missing: npm package ${platform} is not installed: run npm ci without --omit=optional`,
    )
  }
}

function lineSplitter(line: (bytes: Buffer) => void): (chunk: Buffer) => void {
  let begun: Buffer[] = []
  return chunk => {
    let at = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, at)) {
      const piece = chunk.subarray(at, end)
      line(begun.length > 0 ? Buffer.concat([...begun, piece]) : piece)
      begun = []
      at = end + 1
    }
    if (at < chunk.length) begun.push(chunk.subarray(at))
  }
}

function isPatternError(said: string): boolean {
  return /^rg: (?:regex parse error|compiled regex exceeds|the literal .* is not allowed)|^rg: .*regex.*(?:limit|nest)/m.test(said)
}

/** The parser's own words, on one line, without its advice on options that nobody can give here. */
function patternError(said: string): string {
  const parser = /^error: (.*)$/m.exec(said)?.[1]
  return parser ?? said.split('\n')[0]!.replace(/^rg: /, '')
}

function isUtf8(name: Buffer): boolean {
  return Buffer.from(name.toString()).equals(name)
}
