import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import type { Rollout } from '#cg/record/schema.js'
import { makeRepository } from '../unit/repo/make-repository.js'
import { records, run, scratch } from './process.js'

t.setTimeout(240_000)

const { dir, file } = scratch(t)
const env = { CG_STORE: join(dir, 'store'), CG_CACHE: join(dir, 'cache.db'), XDG_CACHE_HOME: join(dir, 'xdg') }
const adapterDir = join(dir, 'adapter')
let prepared = ''

const rescore = (...args: string[]) => run('build/js/test/bench/rescore.js', args, { env })
const lastLine = (text: string) => text.trimEnd().split('\n').at(-1)
const rolloutsIn = (text: string) => records(text).filter(r => r.kind === 'rollout') as unknown as Rollout[]

t.before(async () => {
  const [base_commit] = makeRepository(join(dir, 'mirror/lib'), [
    {
      'lib/header.py': 'def parse_header(line):\n    return line[:-1]\n',
      'lib/queue.py': 'def put(queue, item):\n    raise ValueError("queue is full")\n',
      'lib/app.py': 'from lib.header import parse_header\n\n\ndef run_forever():\n    while True:\n        parse_header("x")\n',
    },
  ])
  const issues = ['parse_header("x") drops the last byte', 'It says "queue is full" although it is empty', 'run_forever() never returns']
  const rows = issues.map((problem_statement, i) =>
    JSON.stringify({ instance_id: `i${i}`, repo: 'acme/lib', base_commit, problem_statement }),
  )
  const { stdout, status, stderr } = await run('bin/cg-worktree', ['--no-run', '--source', join(dir, 'mirror/{name}')], {
    env,
    input: `${rows.join('\n')}\n`,
  })
  if (status !== 0) throw new Error(stderr)
  prepared = stdout
  await writeAdapter()
})

/** An adapter that changes something: one step of a new one, which is the base model. */
async function writeAdapter(): Promise<void> {
  const model = await loadEngine().loadModel('fixtures/model', { backend: 'cpu', threads: 1 })
  const adapter = await model.newAdapter({ rank: 4, alpha: 8, targets: ['q_proj', 'down_proj'] }, 1n)
  const trainer = model.trainer(adapter, { beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0 })
  const sequence = { ids: Int32Array.of(1, 2, 3, 4), spans: Int32Array.of(1, 4), temperature: 1 }
  await trainer.train({
    groups: [{ index: 0, sequences: [sequence] }],
    loss: { kind: 'weighted' },
    denominators: { rollouts: 1, tokens: 3 },
    lr: 0.01,
    clip: 1,
    maxRowsPerPass: 100,
  })
  mkdirSync(adapterDir)
  await trainer.trained.save(adapterDir)
  trainer.dispose()
  model.dispose()
}

async function sample(name: string, policy: string, ...args: string[]): Promise<{ path: string; rollouts: Rollout[] }> {
  const { stdout, status, stderr } = await run('bin/cg-rollout', ['--policy', policy, '-n', '2', ...args], { env, input: prepared })
  if (status !== 0) throw new Error(stderr)
  return { path: file(`${name}.ndjson`, stdout), rollouts: rolloutsIn(stdout) }
}

for (const temperature of ['1', '0.7', '0'])
  t.test(`what was sampled at ${temperature} is scored with the same bits`, async t => {
    const { path, rollouts } = await sample(`t${temperature}`, 'native:fixtures/model', '--temperature', temperature)
    t.ok(
      rollouts.some(({ turns }) => turns.length > 1),
      'several turns',
    )
    const { stdout, stderr, status } = await rescore(path)
    t.equal(status, 0, stderr)
    const tokens = rollouts.reduce((sum, rollout) => sum + rollout.usage.generated, 0)
    t.ok(tokens > 100)
    t.equal(lastLine(stdout), `${tokens} tokens, largest difference 0`)
  })

t.test('with an adapter, which is found beside the rollouts or named', async t => {
  const { path, rollouts } = await sample('adapted', `native:fixtures/model@${adapterDir}`)
  const base = await sample('base', 'native:fixtures/model')
  t.not(rollouts[0]!.tokens!.logprobs[0], base.rollouts[0]!.tokens!.logprobs[0], 'it changes log-probs')
  for (const args of [[], ['--adapter', adapterDir], ['--model', 'fixtures/model']]) {
    const { stdout, stderr } = await rescore(path, ...args)
    t.match(lastLine(stdout), / tokens, largest difference 0$/, stderr)
  }
  const wrong = await rescore(path, '--adapter', 'fixtures/model')
  t.equal(wrong.status, 1)
  t.match(wrong.stderr, /the adapter that sampled \([0-9a-f]{12}\) is not found: none of fixtures\/model is it; name it with --adapter DIR/)
})

t.test('one bit of one log-prob is told', async t => {
  const { path, rollouts } = await sample('bit', 'native:fixtures/model')
  const changed = rollouts[1]!
  const next = new Float32Array([changed.tokens!.logprobs[3]!])
  new Int32Array(next.buffer)[0]! += 1
  const text = readFileSync(path, 'utf8')
    .split('\n')
    .map(line => {
      if (!line.includes(changed.id)) return line
      const record = JSON.parse(line) as Rollout
      record.tokens!.logprobs[3] = Number(next[0])
      return JSON.stringify(record)
    })
  const { stdout, status } = await rescore(file('bit.ndjson', text.join('\n')))
  t.equal(status, 1)
  t.match(stdout, `largest at rollout ${changed.id}, generated token 3\n`)
  t.match(lastLine(stdout), /tokens, largest difference \d.*e-/)
})

t.test('what cannot be scored', async t => {
  const { stdout } = await run('bin/cg-rollout', ['--policy', 'lexical'], { env, input: prepared })
  const text = await rescore(file('text.ndjson', stdout))
  t.equal(text.status, 1)
  t.match(text.stderr, /text\.ndjson:\d+: rollout [0-9a-f]+: it has no tokens \(it is text-only\), so there is nothing to score/)
  const empty = await rescore(file('empty.ndjson', ''))
  t.equal(empty.status, 1)
  t.match(empty.stderr, /no rollout in it/)
  const { path } = await sample('model', 'native:fixtures/model')
  writeFileSync(join(dir, 'elsewhere'), '')
  const other = await rescore(path, '--model', join(dir, 'elsewhere'))
  t.match(other.stderr, /the model that sampled \([0-9a-f]{12}\) is not found/)
  t.equal((await rescore()).status, 2)
})
