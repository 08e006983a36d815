import { argumentProblem, type Parameters } from './arguments.js'
import { wellFormed } from './clip.js'
import { longestGlob, matchGlob } from './glob-match.js'
import { fit, statusOnly } from './observation.js'
import type { Tool } from './toolset.js'

const parameters: Parameters = {
  type: 'object',
  properties: {
    pattern: { type: 'string', description: 'Glob, e.g. *.py, tests/** or src/**/test_*.py. Without a / it matches at any depth.' },
  },
  required: ['pattern'],
}

/** Finds files by name: one path a line, in path order (protocol, "Observations"). */
export const glob: Tool = {
  name: 'glob',
  description: 'Find files whose path matches a glob. Prints one path a line.',
  parameters,

  check(args) {
    const problem = argumentProblem(parameters, args)
    if (problem) return problem
    return args.pattern === '' ? 'pattern is empty' : undefined
  },

  async run(tree, args, caps, signal) {
    const pattern = wellFormed(args.pattern as string)
    if (pattern.length > longestGlob) return statusOnly('bad-pattern', `bad pattern: longer than ${longestGlob} characters`)
    const paths = await tree.list(signal)
    const { matched, timeout } = matchGlob(pattern, paths, caps.timeoutMs.glob)
    const found = matched.slice(0, caps.matches).map(i => paths[i]!)
    if (timeout) {
      const words = `timeout after ${caps.timeoutMs.glob / 1000} s: ${matched.length} ${matched.length === 1 ? 'file' : 'files'} so far`
      return fit(found, caps, () => ({ status: 'timeout', words }))
    }
    if (matched.length === 0) return statusOnly('empty', 'no files')
    return fit(found, caps, kept => {
      const all = kept === matched.length
      return all ? { status: 'ok' } : { status: 'truncated', words: `${kept} of ${matched.length} files shown` }
    })
  },
}
