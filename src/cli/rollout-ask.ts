import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { FatalError, UsageError } from '../record/fault.js'
import type { Output } from '../record/item.js'
import type { Instance, Rollout, Turn } from '../record/schema.js'
import { storeDir } from '../repo/store.js'
import { sampleGroup } from '../rollout/sample-group.js'
import { repositoryTree } from '../tools/repository-tree.js'
import type { Context } from './command.js'
import { printed } from './print-lines.js'
import type { RolloutValues } from './rollout-options.js'
import type { Setup } from './rollout-setup.js'
import { counted } from './worktree-options.js'

/**
 * One question about a local repository, at its HEAD: an answer for people on a terminal, with the turns on standard error as they happen; a rollout record in
 * a pipe.
 */
export async function* ask({ repo: path, issue, store }: RolloutValues, { sampler }: Setup, context: Context): AsyncGenerator<Output> {
  const problem_statement = await issueText(issue!)
  const { tree, repo, commit, worktree, uncommitted } = await repositoryTree(path!, storeDir(store), context.signal)
  if (uncommitted > 0) context.say(`${path}: ${counted(uncommitted, 'uncommitted path')} not seen: the tools read HEAD`)
  const instance: Instance = { instance_id: `${repo}@${commit.slice(0, 12)}`, repo, base_commit: commit, problem_statement, worktree }
  let turns = 0
  const watch = (turn: Turn) => {
    if (sampler.samples === 1) for (const line of turnLines(++turns, turn)) context.say(line)
  }
  context.count.in++
  const { rollouts, faults, cached } = await sampleGroup(
    { ...sampler, openTree: async () => tree, watch },
    instance,
    { pass: 0, index: 0 },
    context.signal,
  )
  if (faults[0]) throw faults[0]
  if (cached) context.count.cached++
  for (const rollout of rollouts) {
    if (!context.terminal) yield rollout
    else for (const line of answerLines(rollout)) yield printed(line)
  }
}

async function issueText(file: string): Promise<string> {
  let text: string
  try {
    text = file === '-' ? await readAll(process.stdin) : await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--issue ${file}: ${(error as Error).message}`)
  }
  if (text.trim() === '') throw new FatalError('E_ISSUE', `--issue ${file}: it is empty: write down what is wrong`)
  return text
}

function turnLines(number: number, { calls, text }: Turn): string[] {
  if (calls.length === 0) return [`turn ${number}: ${/<answer>/.test(text) ? 'answers' : 'says nothing that can be run'}`]
  return calls.map(call => {
    const args = typeof call.arguments === 'string' ? call.arguments : Object.values(call.arguments).map(String).join(' ')
    const lines = (call.observation ?? '').split('\n')
    const got = call.status === 'ok' ? counted(lines.length, 'line') : call.status === 'not-run' ? 'not run' : (lines.at(-1) ?? call.status)
    return `turn ${number}: ${call.name || 'unreadable call'} ${args.replace(/\s+/g, ' ').slice(0, 80)}: ${got}`
  })
}

const stops: Partial<Record<Rollout['stop'], string>> = {
  'no-call': 'it stopped without an answer',
  turns: 'it used up its turns without an answer',
  length: 'it used up its tokens without an answer',
  context: 'the conversation grew too long',
}

/** `path:start-end` for every range of a named file, else the path; so that editors and grep users can jump there. */
export function answerLines({ answer, stop, usage }: Rollout): string[] {
  if (answer.files.length === 0) return [`no file found: ${stops[stop] ?? 'the answer names none'}`]
  return [
    ...answer.files.flatMap(path => {
      const ranges = answer.ranges.filter(range => range.path === path)
      return ranges.length === 0 ? [path] : ranges.map(({ start, end }) => `${path}:${start}-${end}`)
    }),
    `(${counted(usage.turns, 'turn')}, ${counted(usage.calls, 'call')})`,
  ]
}
