import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { makeRepository } from '../unit/repo/make-repository.js'
import { records, scratch, startGroup } from './process.js'

t.setTimeout(280_000)

const { dir } = scratch(t)
const [commit] = makeRepository(join(dir, 'mirror/lib'), [
  {
    'lib/routes.py': 'class Router:\n    def add_route(self, path):\n        self.table[path] = 1\n',
    'lib/config.py': 'def load_config(name):\n    return open(name).read()\n',
    'lib/queue.py': 'class Queue:\n    def retry_job(self, job):\n        self.jobs.append(job)\n',
    'tests/test_routes.py': 'from lib.routes import Router\n',
  },
])
const instance = (id: string, file: string, problem_statement: string) =>
  `${JSON.stringify({
    instance_id: id,
    repo: 'acme/lib',
    base_commit: commit,
    problem_statement,
    target: { gold_rules: 'codegrep/1', files: [{ path: file }] },
  })}\n`
const instances = [
  instance('i0', 'lib/routes.py', 'add_route raises KeyError for an empty path'),
  instance('i1', 'lib/config.py', 'load_config("a") leaves the file open'),
  instance('i2', 'lib/queue.py', 'retry_job appends the job twice'),
]

// biome-ignore lint/suspicious/noExplicitAny: fields of many kinds
type Row = Record<string, any>

/** Away from the user's cache and store. */
const shell = (line: string) => startGroup(line, { CG_CACHE: join(dir, 'cache.db'), CG_STORE: join(dir, 'store') })

const prepared = join(dir, 'prepared.ndjson')
const sampled = join(dir, 'sampled.ndjson')
function pipe(run: string, more = '') {
  return shell(
    `bin/cg-rollout --policy native:fixtures/model --on-policy ${run} --max-tokens 120 --max-turns 2 ${prepared} | tee ${sampled} | bin/cg-reward | ` +
      `bin/cg-train grpo --model fixtures/model --publish ${run} --resume --prompts-per-step 2 -n 4 --steps 3 --lr 1e-3 --lora-rank 4 --kl 0.01 ${more}`,
  )
}
const stepsOf = (stdout: string): Row[] =>
  (records(stdout) as Row[]).filter(({ kind }) => kind === 'step').map(({ timing: _, ...rest }) => rest)
const samples = () => records(readFileSync(sampled, 'utf8')) as Row[]
const tensors = (run: string) => readFileSync(join(run, 'v000003/adapter_model.safetensors'))

let first: Row[]
const whole = join(dir, 'whole')

t.before(async () => {
  writeFileSync(join(dir, 'tasks.ndjson'), instances.join(''))
  const { status, stderr } = await shell(
    `bin/cg-worktree --source ${join(dir, 'mirror/{name}')} -o ${prepared} ${join(dir, 'tasks.ndjson')}`,
  ).done
  if (status !== 0) throw new Error(stderr)
})

t.test('three stages, one directory: each step is sampled from the version before it', async t => {
  const { status, stdout, stderr } = await pipe(whole, `--eval-every 2 --eval-file ${prepared}`).done
  t.equal(status, 0, stderr)
  first = stepsOf(stdout)
  t.same(
    first.map(s => s.version),
    [1, 2, 3],
  )
  const versions = samples()
    .filter(r => r.kind === 'rollout')
    .map(r => r.policy.version)
  t.same(
    versions,
    [0, 1, 2].flatMap(v => Array(8).fill(v)),
  )
  t.ok(new Set(samples().flatMap(r => (r.kind === 'rollout' ? [r.policy.adapter_sha256] : []))).size === 3, 'three adapters sampled')
  for (const step of first) {
    t.match(step, { rollouts: 8, groups: 2, faults: 0 })
    t.match(step.mismatch, { kl: 0, mult_prob_error: 1, max: 0 }, 'sampler and trainer agree bit for bit')
    t.ok(step.unique_tokens < step.tokens, 'a group shares its prompt')
  }
  t.match(
    first.map(s => s.eval?.name),
    [undefined, 'f05', 'f05'],
    'every second step, and the last',
  )
  t.match(first[1]!.eval, { n: 3 })
  t.same(
    samples()
      .filter(r => r.kind === 'barrier')
      .map(b => b.digest),
    first.map(s => s.digest),
  )
  t.match((records(stdout) as Row[]).at(-1), { kind: 'end', ok: true, stage: 'train grpo' })
  t.match(JSON.parse(readFileSync(join(whole, 'trainer.json'), 'utf8')), { state: 'done', seen: 3 })
})

t.test('the same command again prints what is committed, and samples nothing', async t => {
  const before = tensors(whole)
  const { status, stdout } = await pipe(whole, `--eval-every 2 --eval-file ${prepared}`).done
  t.equal(status, 0)
  t.same(stepsOf(stdout), first)
  t.same(
    samples().filter(r => r.kind === 'rollout'),
    [],
  )
  t.match(
    samples().filter(r => r.kind === 'barrier'),
    Array(3).fill({ replayed: true }),
  )
  t.same(tensors(whole), before)
})

t.test('all of it killed after the first step: the same command ends with the same tensors', async t => {
  const killed = join(dir, 'killed')
  const { group, done } = pipe(killed)
  while (!existsSync(join(killed, 'v000001'))) await sleep(20)
  process.kill(-group, 'SIGKILL')
  await done
  const found = readdirSync(killed).filter(name => name.startsWith('v')).length
  const { status, stdout, stderr } = await pipe(killed).done
  t.equal(status, 0, stderr)
  t.same(
    stepsOf(stdout),
    first.map(({ eval: _, ...rest }) => rest),
    `from ${found} versions`,
  )
  t.same(tensors(killed), tensors(whole))
})

t.test('a reward scheme that differs from the run’s is refused, and named', async t => {
  const { status, stderr } = await shell(
    `bin/cg-rollout --policy native:fixtures/model --on-policy ${whole} --max-tokens 120 --max-turns 2 ${prepared} | bin/cg-reward --scheme codegrep-v1 | ` +
      `bin/cg-train grpo --model fixtures/model --publish ${whole} --resume --prompts-per-step 2 -n 4 --steps 3 --lr 1e-3 --lora-rank 4 --kl 0.01`,
  ).done
  t.equal(status, 2)
  t.match(stderr, /--scheme is codegrep-v1, and cg-reward of this run was begun with codegrep-v3/)
})
