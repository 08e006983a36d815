import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rollout } from '#cg/record/schema.js'
import { plainNode } from '../pipeline/process.js'
import { git, makeRepository } from '../unit/repo/make-repository.js'
import { barrier } from '../unit/train/made-rollouts.js'
import type { Place } from './command.js'
import type { Job } from './command-job.js'

/** The instances of a file, joined by commas. */
const rows = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line.includes('"instance_id"'))
    .join(',')

/** What the jobs work on, made once. */
export type Data = { place: Place; jobs: Job[] }

const commits = 6
const source = (n: number, commit: number) =>
  Array.from({ length: 20 }, (_, i) => `def step_${n}_${i}(value):\n    return value + ${i * commit}\n`).join('\n')

/**
 * The commands on a small repository, each in the directory `work` below `dir`; what they read lies beside it. `server` answers chat completions, no two of
 * them alike.
 */
export function commandJobs(dir: string, server: string): Data {
  const work = join(dir, 'work')
  const env: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    HOME: work,
    TMPDIR: join(work, 'tmp'),
    XDG_CACHE_HOME: join(dir, 'xdg'), // what is packed once for all, such as a model's weights
    CG_CACHE: join(work, 'cache.db'),
    CG_STORE: join(work, 'store'),
    NO_COLOR: '1',
  }
  const cg = (command: string, args: string[], input = '') =>
    execFileSync(plainNode[0], [...plainNode.slice(1), `bin/${command}`, '-q', ...args], {
      env,
      input,
      maxBuffer: 1 << 28,
      stdio: ['pipe', 'pipe', 'inherit'],
    }).toString()
  mkdirSync(join(work, 'tmp'), { recursive: true })

  const files = (commit: number) =>
    Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`lib/part_${n}.py`, source(n, n === commit ? 9 : 1)]))
  const ids = makeRepository(
    join(dir, 'mirror/lib'),
    Array.from({ length: commits }, (_, commit) => files(commit)),
  )
  execFileSync('git', ['clone', '-q', '--bare', join(dir, 'mirror/lib'), join(dir, 'early/lib')], { stdio: 'ignore' })
  git(join(dir, 'early/lib'), 'update-ref', 'refs/heads/main', ids[1]!)
  git(join(dir, 'early/lib'), 'gc', '-q', '--prune=now')
  const row = (n: number) => ({
    instance_id: `i${n}`,
    repo: 'acme/lib',
    base_commit: ids[n % commits],
    problem_statement: `step_${n}_3 gives too much: "value + ${n}" in part_${n}.py`,
    patch: git(join(dir, 'mirror/lib'), 'diff', ids[n % commits]!, ids[(n + 1) % commits]!),
  })
  const lines = (records: object[]) => records.map(record => `${JSON.stringify(record)}\n`).join('')
  const instances = Array.from({ length: 2 * commits }, (_, n) => row(n))
  const mirror = ['--source', join(dir, 'mirror/{name}')]
  const save = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }

  // once: what the later stages read, and a store in which all is prepared
  const prepared = save('prepared', cg('cg-worktree', mirror, lines(instances)))
  cpSync(join(work, 'store'), join(dir, 'store'), { recursive: true, preserveTimestamps: true })
  const tasks = save('tasks', cg('cg-mine', ['gold', prepared]))
  const few = save('few', cg('cg-mine', ['gold', '--no-run', save('three', lines(JSON.parse(`[${rows(prepared)}]`).slice(0, 3)))]))
  const rollouts = save('rollouts', cg('cg-rollout', ['--policy', 'lexical', '-n', '4', tasks]))
  const sampled = cg('cg-rollout', [
    '--no-run',
    '--policy',
    'native:fixtures/model',
    '-n',
    '4',
    '--max-tokens',
    '60',
    '--max-turns',
    '2',
    few,
  ])
  const rewarded = cg('cg-reward', ['--no-run'], sampled)
    .trimEnd()
    .split('\n')
    .map((text, n) => {
      const rollout = JSON.parse(text) as Rollout
      const [reward, advantage] = n % 2 ? [1, 0.5] : [0, -0.5]
      const weights = rollout.turns.map((_, turn) => 1 + turn / 4)
      // each group is a step of its own
      return { ...rollout, reward, advantage, weights, group: { ...rollout.group, index: 0 }, policy: { kind: 'native', name: 'm' } }
    })
  const trained = save(
    'rewarded',
    lines(rewarded.flatMap((record, n) => (n % 4 === 3 ? [record, barrier(Math.floor(n / 4), 1).record] : [record]))),
  )
  const plain = save('plain', lines(rewarded))
  const withStore = () => cpSync(join(dir, 'store'), join(work, 'store'), { recursive: true, preserveTimestamps: true })
  const model = ['--model', 'fixtures/model', '--lora-rank', '4', '--lora-alpha', '8', '--lr', '1e-3']
  const run = ['--publish', join(work, 'run'), '--resume', '--out', join(work, 'out')]
  const verify = async () => {
    const said = cg('cg-worktree', ['verify'])
    if (/interrupted|missing|changed|not there/.test(said)) throw new Error(`verify: ${said}`)
    git(join(work, 'store/repos/acme+lib.git'), 'fsck', '--connectivity-only') // throws where an object is missing
  }

  const jobs: Job[] = [
    { name: 'worktree, clone', command: ['bin/cg-worktree', ...mirror], input: lines(instances), check: verify },
    {
      name: 'worktree, fetch',
      command: ['bin/cg-worktree', ...mirror],
      input: lines(instances),
      begin: () => void cg('cg-worktree', ['--source', join(dir, 'early/{name}')], lines(instances.slice(0, 2))),
      check: verify,
    },
    { name: 'mine gold', command: ['bin/cg-mine', 'gold', '-o', join(work, 'tasks'), prepared], begin: withStore },
    { name: 'judge', command: ['bin/cg-judge', prepared], status: 2 },
    { name: 'rollout, lexical', command: ['bin/cg-rollout', '--policy', 'lexical', '-n', '2', tasks], begin: withStore },
    {
      name: 'rollout, native',
      command: ['bin/cg-rollout', '--policy', 'native:fixtures/model', '-n', '2', '--max-tokens', '40', few],
      begin: withStore,
    },
    {
      name: 'rollout, server',
      command: ['bin/cg-rollout', '--policy', `openai:${server}#m`, '-n', '2', '--concurrency', '2', '-j', '2', '--max-turns', '2', tasks],
      begin: withStore,
      unrepeatable: true,
      plain: text => text.replace(/word \d+/g, 'word'),
    },
    { name: 'reward', command: ['bin/cg-reward', '-o', join(work, 'rewarded'), rollouts] },
    { name: 'train sft', command: ['bin/cg-train', 'sft', ...model, '--epochs', '2', '--batch-size', '4', ...run, plain] },
    { name: 'train awr', command: ['bin/cg-train', 'awr', ...model, '--epochs', '2', '--batch-size', '6', ...run, plain] },
    { name: 'train grpo', command: ['bin/cg-train', 'grpo', ...model, ...run, trained] },
    { name: 'eval score', command: ['bin/cg-eval', 'score', '-o', join(work, 'scores'), rollouts] },
    { name: 'eval table', command: ['bin/cg-eval', 'table', `lexical=${rollouts}`] },
    { name: 'eval compare', command: ['bin/cg-eval', 'compare', `a=${rollouts}`, `b=${rollouts}`] },
  ]
  return { place: { work, env }, jobs }
}
