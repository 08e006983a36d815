import { execFileSync } from 'node:child_process'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeManyCommits, manyInstances } from './many-instances.js'
import { makeMicroModel } from './micro-model.js'

export const onPolicyStages = ['cg-rollout', 'cg-reward', 'cg-train']

const call = (name: string, args: object) => `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`
const answer = (part: number) => `<answer>{"files": ["lib/part_${part}.py"], "line_ranges": []}</answer>`

/** The shell's environment for commands on what `makeMicroWork` made. */
export const microEnv = (dir: string) => ({ CG_STORE: join(dir, 'store'), CG_CACHE: join(dir, 'cache.db') })

/**
 * Puts a micro model (`model`) and `count` prepared instances with targets (`tasks.ndjson`), each about a commit of its own, into `dir`.
 *
 * The model answers with one of the three files that are right somewhere, or makes a call first: of its calls one needs ripgrep, the others do not.
 */
export function makeMicroWork(dir: string, count: number): void {
  makeMicroModel(join(dir, 'model'), [
    answer(0),
    answer(1),
    answer(2),
    call('grep', { pattern: 'def adjust_[a-c]_1' }),
    call('read', { path: 'lib/part_3.py' }),
    call('glob', { pattern: '*_2.py' }),
  ])
  const rows = Math.ceil((count * 8) / 3)
  const repositories = ['acme/one', 'acme/two'].map(repo => makeManyCommits(join(dir, 'mirror'), repo, rows))
  const asked = [...manyInstances(repositories, rows)].filter((_, n) => n % 8 < 3).slice(0, count)
  writeFileSync(join(dir, 'rows.ndjson'), asked.join(''))
  const line = `unset NODE_OPTIONS; bin/cg-worktree -q --source ${dir}/mirror/{repo} ${dir}/rows.ndjson | bin/cg-mine gold -q -o ${dir}/tasks.ndjson`
  execFileSync('/bin/bash', ['-o', 'pipefail', '-c', line], {
    env: { ...process.env, ...microEnv(dir) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** On-policy training of the micro model in `dir/NAME`, from an empty directory or on with what is there; `step` records go to `dir/NAME.steps`. */
export function onPolicyLine(dir: string, name: string, steps: number, { prompts = 2, samples = 4, concurrency = 64 } = {}): string {
  const model = join(dir, 'model')
  const run = join(dir, name)
  return [
    `bin/cg-rollout --no-cache --policy native:${model} --threads 1 --on-policy ${run} --concurrency ${concurrency} --max-turns 3 --max-chars 300 ${dir}/tasks.ndjson`,
    'bin/cg-reward --no-cache',
    `bin/cg-train grpo --threads 1 --model ${model} --publish ${run} --resume --prompts-per-step ${prompts} -n ${samples} --steps ${steps} --lr 1e-4 --lora-rank 2 --kl 0.01 -o ${run}.steps`,
  ].join(' | ')
}

/** Files below a directory, and their bytes but for those of the growing log. */
export function sizeOf(dir: string): { files: number; bytes: number } {
  const size = { files: 0, bytes: 0 }
  for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    const stat = statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })
    if (!stat?.isFile()) continue
    size.files++
    if (entry.name !== 'steps.ndjson') size.bytes += stat.size
  }
  return size
}
