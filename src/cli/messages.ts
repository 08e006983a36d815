import { FatalError, RecordFault, UsageError } from '../record/fault.js'

export type Messages = {
  /** Nothing with -q. */
  say(message: string): void
  /** Also with -q. */
  warn(message: string): void
  /** With -v. */
  detail(message: string): void
  /** What ended the command, with the line it is about; a stack only with -vv or for a bug. */
  error(error: unknown): void
  /** One rewritten line: done of total and a few words. */
  progress(done: number, total: number | undefined, words?: string): void
  /** Takes the progress line away. */
  clear(): void
}

type MessageOptions = { name: string; quiet: boolean; verbose: number; progress: 'auto' | 'always' | 'never'; color: boolean }

const columns = 78
const refreshMs = 200

/** Everything that a command says on standard error; each line begins with its name, because the errors of a pipe's stages mix. */
export function createMessages({ name, quiet, verbose, progress, color }: MessageOptions): Messages {
  const rewrites = process.stderr.isTTY === true
  const shows = progress === 'always' || (progress === 'auto' && rewrites && !quiet)
  let shown = false
  let last = Number.NEGATIVE_INFINITY // by a clock that nobody sets
  // a standard error that goes away takes nothing else with it
  process.stderr.on('error', () => {})

  const clear = () => {
    if (shown) process.stderr.write('\r\x1b[K')
    shown = false
  }
  const line = (text: string) => {
    clear()
    process.stderr.write(`${color ? `\x1b[1m${name}:\x1b[0m` : `${name}:`} ${text}\n`)
  }

  return {
    say: message => {
      if (!quiet) line(message)
    },
    warn: line,
    detail: message => {
      if (verbose > 0 && !quiet) line(message)
    },
    error: error => {
      const { text, stack } = describe(error)
      line(text)
      const excerpt = error instanceof RecordFault ? error.excerpt : undefined
      if (excerpt) process.stderr.write(withCaret(excerpt.text, excerpt.at, color))
      if (stack && verbose >= 2 && error instanceof Error) process.stderr.write(`${error.stack}\n`)
    },
    progress: (done, total, words = '') => {
      if (!shows || performance.now() - last < (rewrites ? refreshMs : 5 * refreshMs)) return
      last = performance.now()
      const text = `${name}: ${done}${total === undefined ? '' : ` of ${total}`}${words ? `, ${words}` : ''}`
      if (rewrites) process.stderr.write(`\r${text.slice(0, (process.stderr.columns ?? columns) - 1)}\x1b[K`)
      else process.stderr.write(`${text}\n`)
      shown = rewrites
    },
    clear,
  }
}

function describe(error: unknown): { text: string; stack: boolean } {
  if (error instanceof RecordFault) {
    const where = error.origin ? `${error.origin.file}:${error.origin.line}: ` : ''
    return { text: `${where}${error.message}`, stack: true }
  }
  if (error instanceof FatalError || error instanceof UsageError) return { text: error.message, stack: true }
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return { text: error.message, stack: true }
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { text: `this is a bug: ${what}: report it with the command line (-vv shows where)`, stack: true }
}

/** The part of a line around a place, and a caret under it. Control characters are shown as spaces, so that the caret stands right. */
export function withCaret(text: string, at: number, color = false): string {
  const width = columns - 4
  const from = Math.max(0, Math.min(at - Math.floor(width / 2), text.length - width))
  const to = Math.min(text.length, from + width)
  const head = from > 0 ? '…' : ''
  const shown = text.slice(from, to).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
  const before = [...shown.slice(0, at - from)].length + head.length
  const caret = color ? '\x1b[31m^\x1b[0m' : '^'
  return `  ${head}${shown}${to < text.length ? '…' : ''}\n  ${' '.repeat(before)}${caret}\n`
}
