import { argumentProblem, type Parameters } from './arguments.js'
import { clipLine, wellFormed } from './clip.js'
import { longestGlob } from './glob-match.js'
import { fit, statusOnly } from './observation.js'
import { guardPath } from './path-guard.js'
import { badPattern, dialectHint } from './pattern-hint.js'
import { longestPattern } from './ripgrep.js'
import type { Caps, Observation, Tool } from './toolset.js'
import type { GrepLine, Tree } from './tree.js'

const parameters: Parameters = {
  type: 'object',
  properties: {
    pattern: {
      type: 'string',
      description:
        'Regular expression in the dialect of ripgrep; it matches within one line. Alternatives are written a|b, a literal ( is written \\(.',
    },
    path: { type: 'string', description: 'Only search this file, or the files below this folder.' },
    glob: {
      type: 'string',
      description: 'Only search files whose path matches, e.g. *.py or src/**/*.py. Without a / it matches at any depth.',
    },
    ignore_case: { type: 'boolean', description: 'Ignore case.' },
    context: { type: 'integer', description: 'Lines to show before and after each match.', minimum: 0, maximum: 20 },
  },
  required: ['pattern'],
}

/** Searches file contents: `path:line:text` for matches, `path-line-text` for context, in path order (protocol, "Observations"). */
export const grep: Tool = {
  name: 'grep',
  description: 'Search the contents of files for a pattern. Prints path:line:text for every line that matches.',
  parameters,

  check(args) {
    const problem = argumentProblem(parameters, args)
    if (problem) return problem
    if (args.pattern === '') return 'pattern is empty'
    if (String(args.glob ?? '').length > longestGlob) return `glob is longer than ${longestGlob} characters`
    return undefined
  },

  async run(tree, args, caps, signal) {
    const pattern = wellFormed(args.pattern as string)
    if (pattern.length > longestPattern) return statusOnly('bad-pattern', `bad pattern: longer than ${longestPattern} characters`)
    if (pattern.includes('\0')) return statusOnly('bad-pattern', 'bad pattern: it holds a NUL, files of text do not')
    const path = guardPath((args.path as string | undefined) ?? '')
    if ('refused' in path) return statusOnly('refused', `refused: ${path.refused}`)
    const glob = (args.glob as string | undefined) ?? (await defaultGlob(tree, path.inside, caps))

    const result = await tree.grep(
      {
        pattern,
        path: path.inside,
        ...(glob === undefined ? {} : { glob }),
        ignoreCase: args.ignore_case === true,
        context: (args.context as number | undefined) ?? 0,
        limit: caps.matches,
        timeoutMs: caps.timeoutMs.grep,
      },
      signal,
    )
    if (result.kind === 'missing') return statusOnly('not-found', 'no such file')
    if (result.kind === 'failed') return statusOnly('error', `error: the search failed: ${result.message.slice(0, 200)}`)
    if (result.kind === 'bad-pattern') return statusOnly('bad-pattern', badPattern(pattern, result.message))
    if (result.kind === 'timeout') return timedOut(result.lines, caps)
    return matches(pattern, result, caps)
  },
}

/** A file named by its path is searched whatever it is called. */
async function defaultGlob(tree: Tree, path: string, caps: Caps): Promise<string | undefined> {
  if (caps.grepGlob === undefined) return undefined
  return (await tree.list()).includes(path) ? undefined : caps.grepGlob
}

function matches(
  pattern: string,
  { lines, total, skippedBinary }: { lines: GrepLine[]; total: number; skippedBinary: number },
  caps: Caps,
): Observation {
  const skipped = skippedBinary === 0 ? '' : `${skippedBinary} binary ${skippedBinary === 1 ? 'file' : 'files'} skipped`
  const also = skipped && `, ${skipped}`
  if (total === 0) {
    const hint = dialectHint(pattern)
    return statusOnly('empty', `no matches${hint ? `: ${hint}` : ''}${also}`)
  }
  return fit(render(lines, caps), caps, kept => {
    const shown = countMatches(lines, kept)
    if (shown < total) return { status: 'truncated', words: `${shown} of ${total} matches shown${also}` }
    if (kept < lines.length) return { status: 'truncated', words: `all ${total} matches shown, not all context${also}` }
    return { status: 'ok', words: skipped || undefined }
  })
}

function timedOut(lines: GrepLine[], caps: Caps): Observation {
  const found = countMatches(lines, lines.length)
  const words = `timeout after ${caps.timeoutMs.grep / 1000} s: ${found} ${found === 1 ? 'match' : 'matches'} so far`
  return fit(render(lines, caps), caps, () => ({ status: 'timeout', words }))
}

function render(lines: GrepLine[], caps: Caps): string[] {
  return lines.map(({ path, line, text, match, at }) => {
    const sign = match ? ':' : '-'
    return `${path}${sign}${line}${sign}${clipLine(text, caps.lineChars, at)}`
  })
}

function countMatches(lines: GrepLine[], kept: number): number {
  let count = 0
  for (let i = 0; i < kept; i++) if (lines[i]!.match) count++
  return count
}
