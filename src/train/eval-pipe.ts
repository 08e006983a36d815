import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { FatalError } from '../record/fault.js'
import { type Run, score as scoreSchema } from '../record/schema.js'
import { leashed } from '../repo/leash.js'
import type { Figure } from './best.js'

export type EvalPlan = {
  /** What `cg-rollout --policy` calls a version in a directory. */
  policy(dir: string): string
  /** Instances with `target` and `worktree`. */
  file: string
  /** Rollouts an instance: 1 is greedy, more are sampled at temperature 1. */
  samples: number
  seed: string
  threads: number
  device: string
  dtype: string
}

/** Options of cg-rollout that say how a rollout goes, not how it is drawn. */
const conduct = new Set([
  'recipe',
  'toolset',
  'prompt',
  'thinking',
  ...['max-tokens', 'max-turn-tokens', 'max-context', 'max-turns', 'max-calls', 'max-issue-chars'],
  ...['max-chars', 'max-matches', 'max-lines', 'max-line-chars', 'grep-glob', 'grep-timeout', 'glob-timeout', 'read-timeout'],
])

/** The limits and words of the rollouts that train, as arguments for those that measure. */
export function conductArguments(runs: readonly Run[]): string[] {
  const rollout = runs.findLast(run => run.stage === 'rollout')
  return Object.entries(rollout?.options ?? {}).flatMap(([name, value]) =>
    conduct.has(name) && (typeof value === 'string' || typeof value === 'number') ? [`--${name}=${value}`] : [],
  )
}

/**
 * Mean F0.5 of a version's rollouts on held-out instances: `cg-rollout | cg-reward | cg-eval score` as child processes, each of them the command as a user has it.
 *
 * They take their limits from the rollouts that train (`runs`: the stages before this one). The children are in sessions of their own: an
 * interrupt ends the training after this step, and the step's figure belongs to it. They end with this process, however it ends. Throws FatalError E_EVAL,
 * with what the stage said, when one of them fails or nothing could be scored.
 */
export async function evaluateInstances(plan: EvalPlan, versionDir: string, runs: readonly Run[]): Promise<Figure> {
  const { file, samples, seed, threads, device, dtype } = plan
  const sampling = samples === 1 ? ['--greedy'] : ['--temperature', '1']
  const drawn = [
    ...sampling,
    '--samples-per-prompt',
    String(samples),
    '--seed',
    seed,
    '--threads',
    String(threads),
    '--device',
    device,
    '--dtype',
    dtype,
  ]
  const stages: [string, string[]][] = [
    ['cg-rollout', ['--policy', plan.policy(versionDir), ...conductArguments(runs), ...drawn, '-q', file]],
    ['cg-reward', ['-q']],
    ['cg-eval', ['score', '-q']],
  ]
  const scores: number[] = []
  await runPipe(stages, line => {
    const parsed = scoreSchema.safeParse(JSON.parse(line))
    if (parsed.success) scores.push(parsed.data.f05)
  })
  if (scores.length === 0)
    throw new FatalError('E_EVAL', `${file} gave no score: its instances need a target (cg-mine gold) and a worktree (cg-worktree)`)
  return { name: 'f05', value: scores.reduce((sum, f) => sum + f, 0) / scores.length, n: scores.length }
}

/** Runs cg commands one into the next and gives the last one's lines. Rejects with the first failing stage's own words. */
async function runPipe(stages: readonly [command: string, args: string[]][], line: (text: string) => void): Promise<void> {
  const { command, env } = leashed(process.execPath)
  const [file, ...first] = command
  const children = stages.map(([stage, args], i) =>
    spawn(file, [...first, binary(stage), ...args], {
      stdio: [i === 0 ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      detached: true,
    }),
  )
  for (const [i, child] of children.slice(1).entries()) {
    child.stdin!.on('error', () => {}) // the stage ended early: its status says why
    children[i]!.stdout!.pipe(child.stdin!)
  }
  const ends = children.map(async (child, i) => {
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-2000)
    })
    const status = await new Promise<number | string>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    })
    if (status !== 0)
      throw new FatalError('E_EVAL', `evaluation: ${stages[i]![0]} ended with ${status}: ${said.trim() || 'it said nothing'}`)
  })
  const reading = (async () => {
    for await (const text of createInterface({ input: children.at(-1)!.stdout! })) if (text.trim()) line(text)
  })()
  const results = await Promise.allSettled([...ends, reading])
  const failed = results.find(result => result.status === 'rejected')
  if (failed) throw failed.reason
}

function binary(command: string): string {
  return fileURLToPath(new URL(`../../bin/${command}`, import.meta.url))
}
