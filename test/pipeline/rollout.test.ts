import { join } from 'node:path'
import t, { type Test } from 'tap'
import rolloutCommand from '#cg/cli/rollout.js'
import { answerLines } from '#cg/cli/rollout-ask.js'
import { loadEngine } from '#cg/engine/load.js'
import { readCheckpointFiles } from '#cg/model/checkpoint-files.js'
import { createTokenizer } from '#cg/model/tokenizer.js'
import type { Rollout } from '#cg/record/schema.js'
import { makeRepository } from '../unit/repo/make-repository.js'
import { inProcess } from './in-process.js'
import { type Result, records, run, scratch, start } from './process.js'

t.setTimeout(240_000)

const issues = ['parse_header("x") drops the last byte', 'It says "queue is full" although it is empty', 'run_forever() never returns']

/** A repository, three prepared instances of it, and cg-rollout with a store and a cache of its own. */
async function setUp(t: Test) {
  const { dir, file } = scratch(t)
  const source = join(dir, 'mirror/lib')
  const commits = makeRepository(source, [
    {
      'lib/header.py': 'def parse_header(line):\n    return line[:-1]\n',
      'lib/queue.py': 'def put(queue, item):\n    raise ValueError("queue is full")\n',
      'lib/app.py': 'from lib.header import parse_header\n\n\ndef run_forever():\n    while True:\n        parse_header("x")\n',
    },
  ])
  const env = { CG_STORE: join(dir, 'store'), CG_CACHE: join(dir, 'cache.db'), XDG_CACHE_HOME: join(dir, 'xdg') }
  const rows = issues.map((problem_statement, i) =>
    JSON.stringify({ instance_id: `i${i}`, repo: 'acme/lib', base_commit: commits[0], problem_statement }),
  )
  const prepared = await run('bin/cg-worktree', ['--no-run', '--source', join(dir, 'mirror/{name}')], {
    env,
    input: `${rows.join('\n')}\n`,
  })
  t.equal(prepared.status, 0, prepared.stderr)
  const rollout = (args: string[], input: string | null = prepared.stdout) => run('bin/cg-rollout', args, { env, input: input ?? '' })
  return { dir, file, source, env, rows, prepared: prepared.stdout, rollout }
}

const rollouts = ({ stdout }: Result) => records(stdout).filter(r => r.kind === 'rollout') as unknown as Rollout[]
const withoutTiming = (text: string) => text.replace(/"timing":\{[^}]*\}/g, '')

t.test('lexical: groups in input order, the same at any -j and from the cache', async t => {
  const { rollout } = await setUp(t)
  const miss = await rollout(['--policy', 'lexical', '-n', '2'])
  t.equal(miss.status, 0)
  t.match(miss.stderr, /cg-rollout: 3 in, 6 out, 0 cached, 0 faults/)
  t.same(
    rollouts(miss).map(r => [r.instance_id, r.sample, r.group.size, r.group.index]),
    [0, 0, 1, 1, 2, 2].map((i, k) => [`i${i}`, k % 2, 2, i]),
  )
  t.same(
    rollouts(miss).map(r => r.answer.files),
    ['header', 'header', 'queue', 'queue', 'app', 'app'].map(name => [`lib/${name}.py`]),
  )
  const hit = await rollout(['--policy', 'lexical', '-n', '2'])
  t.equal(hit.stdout, miss.stdout)
  t.match(hit.stderr, /3 in, 6 out, 3 cached/)
  const one = await rollout(['--policy', 'lexical', '-n', '2', '-j', '1', '--concurrency', '1', '--no-cache'])
  t.equal(withoutTiming(one.stdout), withoutTiming(miss.stdout))
})

t.test('other policies, and what they are told', async t => {
  const { rollout, file } = await setUp(t)
  const lexical = await rollout(['--policy', 'lexical'])
  const replay = await rollout(['--policy', `replay:${file('old.ndjson', lexical.stdout)}`])
  t.same(
    rollouts(replay).map(r => r.turns),
    rollouts(lexical).map(r => r.turns),
  )
  const bm25 = await rollout(['--policy', 'bm25'])
  t.ok(rollouts(bm25)[0]!.answer.files.includes('lib/header.py'))
  t.equal(rollouts(bm25)[0]!.answer.files.length, 2)
})

t.test('what cannot be rolled out', async t => {
  const { rollout, rows, prepared } = await setUp(t)
  const good = prepared.split('\n')[0]!
  const stopped = await rollout(['--policy', 'lexical', '--no-run'], `${good}\n${rows[1]}\n`)
  t.equal(stopped.status, 1)
  t.match(stopped.stderr, /cg-rollout: -:2: i1 has no worktree: put cg-worktree before this command/)
  t.equal(rollouts(stopped).length, 1, 'what was done is not lost')
  const kept = await rollout(['--policy', 'lexical', '--no-run', '-k'], `${rows[1]}\n${good}\n`)
  t.equal(kept.status, 3)
  t.match(records(kept.stdout), [{ kind: 'fault', stage: 'rollout', code: 'E_NO_WORKTREE', of: 'i1' }, { kind: 'rollout' }])
  t.equal((await rollout(['--policy', 'lexical', '-k'], `${rows[1]}\n`)).status, 4)
  const replay = await rollout(['--policy', 'openai:http://127.0.0.1:1/v1#m', '--retries', '0'])
  t.equal(replay.status, 1)
  t.match(replay.stderr, /openai|127\.0\.0\.1:1\/v1\/chat\/completions: .*is the server running/)
  const members = await rollout(['--policy', 'openai:http://127.0.0.1:1/v1#m', '--retries', '0', '-k', '-n', '2', '--no-run'], `${good}\n`)
  t.equal(members.status, 3)
  t.match(records(members.stdout), [
    { kind: 'rollout', stop: 'fault' },
    { kind: 'rollout', stop: 'fault' },
    { kind: 'fault', code: 'E_SERVER' },
    { kind: 'fault' },
  ])
})

const usage: [what: string, args: string[], message: RegExp][] = [
  ['no policy', [], /who answers\? say --policy/],
  ['an unknown policy', ['--policy', 'lexicl'], /did you mean lexical/],
  ['greedy and a temperature', ['--policy', 'lexical', '--greedy', '--temperature', '1'], /--greedy and --temperature contradict/],
  ['on-policy without a model', ['--policy', 'lexical', '--on-policy', 'run'], /--on-policy takes --policy native:MODEL/],
  ['on-policy with an adapter', ['--policy', 'native:fixtures/model@fixtures', '--on-policy', 'run'], /takes the adapters from run/],
  ['--wait alone', ['--policy', 'lexical', '--wait', '3'], /belong to --on-policy/],
  ['a repository without an issue', ['--repo', '.'], /go together/],
  ['a device that was not built', ['--policy', 'native:fixtures/model', '--device', 'cuda:0'], /built without CUDA/],
  ['no such device', ['--policy', 'native:fixtures/model', '--device', 'tpu'], /not a device/],
  ['a context beyond the model', ['--policy', 'native:fixtures/model', '--max-context', '5000'], /the model has 4096 positions/],
]
t.test('usage errors', async t => {
  for (const [what, args, message] of usage)
    t.match((await inProcess(rolloutCommand, ['--no-cache', ...args])).error, { name: 'UsageError', message }, what)
  t.equal((await run('bin/cg-rollout', [], { input: '{}' })).status, 2)
})

t.test('the recipe says what it becomes, and your own word wins', async t => {
  const { rollout } = await setUp(t)
  const { stderr, stdout } = await rollout(['--policy', 'lexical', '--recipe', 'codegrep', '-n', '1', '--temperature', '0.5'])
  t.match(
    stderr,
    /--samples-per-prompt 1 \(yours; the recipe has 8\)\n.*--prompts-per-step 64\n.*--temperature 0\.5 \(yours; the recipe has 1\)/s,
  )
  t.match(rollouts({ stdout } as Result)[0]!.sampling, {
    temperature: 0.5,
    top_p: 0.9,
    top_k: 50,
    max_tokens: 4096,
    max_turns: 4,
    max_calls: 8,
  })
})

t.test('one question about a local repository', async t => {
  const { rollout, source, file } = await setUp(t)
  const issue = file('issue.txt', issues[0]!)
  const { status, stdout, stderr } = await rollout(['--repo', source, '--issue', issue])
  t.equal(status, 0)
  t.match(stderr, /turn 1: grep def parse_header: 1 line\n.*turn 2: answers/s)
  const [answered] = rollouts({ stdout } as Result)
  t.match(answered, { repo: 'lib', instance_id: /^lib@[0-9a-f]{12}$/, answer: { files: ['lib/header.py'] } })
  t.same(answerLines(answered!), [
    'lib/header.py:1-11',
    `(2 turns, ${answered!.usage.calls} call${answered!.usage.calls === 1 ? '' : 's'})`,
  ])
  const piped = await rollout(['--repo', source, '--issue', '-', '-q'], issues[0]!)
  t.same(rollouts(piped)[0]!.answer.files, ['lib/header.py'])
  t.equal(piped.stderr, '')
  t.match(await rollout(['--repo', source, '--issue', file('empty', '\n')]), { status: 1, stderr: /it is empty/ })
  t.match(await rollout(['--repo', source, '--issue', 'none.txt']), { status: 2, stderr: /none\.txt/ })
  t.match(await rollout(['--repo', '/', '--issue', issue]), { status: 1 })
})

t.test('native: token lists that the trainer scores the same, bit for bit, however they were batched', async t => {
  const { rollout } = await setUp(t)
  const args = ['--policy', 'native:fixtures/model', '-n', '3', '--max-turn-tokens', '60', '--seed', '5']
  const batched = await rollout([...args, '--concurrency', '9', '--no-cache'])
  t.equal(batched.status, 0, batched.stderr)
  const single = await rollout([...args, '--concurrency', '1', '--threads', '1', '--no-cache'])
  t.equal(withoutTiming(single.stdout), withoutTiming(batched.stdout))
  const all = rollouts(batched)
  t.equal(all.length, 9)
  t.equal(all[0]!.protocol.name, 'brief', 'the model’s own prompt')
  t.match(all[0]!.policy, { kind: 'native', name: 'model', model_sha256: /^[0-9a-f]{64}$/ })
  t.ok(new Set(all.map(r => r.turns[0]!.text)).size > 3, 'members differ')

  const { tokenizer } = readCheckpointFiles('fixtures/model')
  const model = await loadEngine().loadModel('fixtures/model', {
    backend: 'reference',
    threads: 0,
    realVocab: createTokenizer(tokenizer).vocab,
  })
  const { logprobs } = await model.score({
    adapter: null,
    sequences: all.map(r => ({
      ids: Int32Array.from(r.tokens!.ids),
      spans: Int32Array.from(r.tokens!.spans.flatMap(span => span.slice(0, 2))),
      temperature: 1,
    })),
  })
  const sampled = all.flatMap(r => r.tokens!.logprobs)
  t.equal(sampled.length, logprobs.length)
  t.same(Float32Array.from(sampled), logprobs)
  model.dispose()

  const remote = await rollout([...args, '--device', 'reference-remote', '--no-cache'])
  t.equal(withoutTiming(remote.stdout), withoutTiming(batched.stdout), 'and on memory that nobody but the backend may touch')
})

t.test('greedy is greedy', async t => {
  const { rollout } = await setUp(t)
  const { stdout } = await rollout(['--policy', 'native:fixtures/model', '--greedy', '-n', '2', '--max-turn-tokens', '40'])
  const all = rollouts({ stdout } as Result)
  for (let i = 0; i < all.length; i += 2) t.same(all[i]!.turns, all[i + 1]!.turns)
  t.equal(all[0]!.sampling.temperature, 0)
})

t.test('a signal: what is done is written and kept, and the same command goes on', async t => {
  const { env, prepared, rollout } = await setUp(t)
  const input = Array.from({ length: 30 }, (_, i) =>
    prepared
      .trim()
      .split('\n')
      .map(line => line.replace(/"instance_id":"(\w+)"/, `"instance_id":"$1-${i}"`)),
  )
    .flat()
    .join('\n')
  const args = ['--policy', 'native:fixtures/model', '-n', '2', '--concurrency', '4', '-j', '2', '--max-turn-tokens', '60']
  const { child, done } = start('bin/cg-rollout', args, { env, input: `${input}\n` })
  await new Promise<void>(resolve => {
    let seen = 0
    child.stdout!.on('data', text => {
      seen += String(text).split('"kind":"rollout"').length - 1
      if (seen >= 6) resolve()
    })
  })
  child.kill('SIGTERM')
  const { signal, stdout } = await done
  t.equal(signal, 'SIGTERM')
  const first = records(stdout)
  t.match(first.at(-1), { kind: 'end', ok: false })
  const kept = rollouts({ stdout } as Result)
  t.ok(kept.length >= 6 && kept.length < 180, `${kept.length} rollouts`)
  const again = await rollout(args, `${input}\n`)
  t.equal(again.status, 0)
  const whole = rollouts(again)
  t.equal(whole.length, 180)
  t.same(JSON.stringify(whole.slice(0, kept.length)), JSON.stringify(kept), 'the same bytes, from the cache')
})
