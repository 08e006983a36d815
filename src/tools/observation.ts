import type { CallStatus } from '../record/schema.js'
import { codePoints } from './clip.js'
import type { Caps, Observation } from './toolset.js'

/** A status alone, in brackets. */
export function statusOnly(status: CallStatus, words: string): Observation {
  return { text: `[${words}]`, status, truncated: false }
}

/** What stands around the first `kept` body lines: a head line, and the words of the last line in brackets. */
export type Frame = { status: CallStatus; head?: string; words?: string | undefined }

/**
 * Body lines in their frame within the caps: as many whole lines as fit; head and status always stay. `frame` is asked for each number of lines tried.
 */
export function fit(body: readonly string[], caps: Pick<Caps, 'chars' | 'lines'>, frame: (kept: number) => Frame): Observation {
  // Every line costs its newline; the last one has none.
  const cost = (line: string | undefined) => (line === undefined ? 0 : codePoints(line) + 1)
  let kept = Math.min(body.length, caps.lines)
  let size = body.slice(0, kept).reduce((sum, line) => sum + cost(line), 0)
  for (;;) {
    const { status, head, words } = frame(kept)
    const last = words === undefined ? undefined : `[${words}]`
    if (kept === 0 || cost(head) + size + cost(last) - 1 <= caps.chars) {
      const lines = [head, ...body.slice(0, kept), last].filter(line => line !== undefined)
      return { text: lines.join('\n'), status, truncated: kept < body.length || status === 'truncated' }
    }
    size -= cost(body[--kept])
  }
}
