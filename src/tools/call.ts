import { canonical } from '../record/canonical.js'
import type { Cache } from '../store/cache.js'
import { createLimit } from './limit.js'
import { statusOnly } from './observation.js'
import type { Observation, Tool, ToolRunner, Toolset } from './toolset.js'
import type { Tree } from './tree.js'

export type ToolRunnerOptions = {
  toolset: Toolset
  cache: Cache
  /** Tools that run at once. */
  cores: number
}

/** Calls that are looked up or wait for a core at once (CodeGrep, appendix A.1: Semaphore(64)); others stand outside. */
const queue = 64

/**
 * Runs the calls of one toolset. A call that is not well formed gets an observation that says why, not an exception.
 *
 * Results are cached by (tree, toolset digest, call): they are facts about the tree. A timeout or an error is not. The same call made twice at the same time
 * runs once. A tool's time limit counts from when it gets a core. Rejects with RecordFault for a damaged worktree, and when `signal` is aborted.
 */
export function createToolRunner({ toolset, cache, cores }: ToolRunnerOptions): ToolRunner {
  const admitted = createLimit(queue)
  const onCore = createLimit(cores)
  const inFlight = new Map<string, Promise<Observation>>()

  const run = async (tree: Tree, tool: Tool, args: Record<string, unknown>, signal?: AbortSignal): Promise<Observation> => {
    const key = { stage: 'tool', version: 1, tree: tree.id, toolset: toolset.digest, tool: tool.name, arguments: args }
    const known = cache.get(key) as Observation | undefined
    if (known) return known
    const observation = await onCore(() => tool.run(tree, args, toolset.caps, signal))
    if (observation.status !== 'timeout' && observation.status !== 'error') cache.put(key, observation)
    return observation
  }

  const runner: ToolRunner = {
    async call(tree, name, args, signal) {
      if (typeof args !== 'object' || args === null || Array.isArray(args) || name === '') return statusOnly('bad-call', 'bad call')
      const tool = toolset.tools.find(tool => tool.name === name)
      if (!tool) return statusOnly('unknown-tool', `unknown tool: ${oneLine(name)}`)
      const checked = args as Record<string, unknown>
      const problem = tool.check(checked)
      if (problem) return statusOnly('bad-arguments', `bad arguments: ${problem}`)

      const key = canonical([tree.id, name, checked])
      const same = inFlight.get(key)
      if (same)
        return same.catch(() => {
          // Its own caller may have given up: that is no answer to this one.
          signal?.throwIfAborted()
          return runner.call(tree, name, args, signal)
        })
      const result = admitted(() => run(tree, tool, checked, signal))
      inFlight.set(key, result)
      const forget = () => inFlight.delete(key)
      result.then(forget, forget)
      return result
    },
  }
  return runner
}

/** A name that a model made up, short enough and without line breaks. */
function oneLine(name: string): string {
  return JSON.stringify(name.slice(0, 60)).slice(1, -1)
}
