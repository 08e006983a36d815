import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { thisProcess } from '#cg/repo/holder.js'
import { barrier, type Made, pairedRollout as rollout } from '../unit/train/made-rollouts.js'
import { records, run, scratch, start } from './process.js'

t.setTimeout(280_000)

const command = 'bin/cg-train'
const model = ['--model', 'fixtures/model', '--lora-rank', '4', '--lora-alpha', '8', '--lr', '1e-3']

const lines = (...all: object[]) => all.map(record => `${JSON.stringify(record)}\n`).join('')
const stepLines = (step: number, over: Made = {}) => lines(rollout(step, 0, over), rollout(step, 1, over), barrier(step, 1).record)
const stepsOf = (stdout: string) => records(stdout).filter(record => record.kind === 'step').map(({ timing: _, ...rest }) => rest) // biome-ignore format: one thought

function grpo(args: string[], input: string) {
  return run(command, ['grpo', ...model, ...args], { input })
}

t.test('wrong usage is status 2', async t => {
  const { dir, file } = scratch(t)
  const out = ['--out', join(dir, 'out')]
  const cases: [string[], RegExp][] = [
    [['grpo', ...out], /--model is missing/],
    [['grpo', ...model], /neither --out nor --publish/],
    [['grpo', ...model, ...out, '--schedule', 'cosine'], /ends with the last step, and a stream has no length: give --steps/],
    [['grpo', ...model, ...out, '--lora-targets', 'q,x'], /'x' is none of/],
    [['awr', ...model, ...out, '--recipe', 'codegrep'], /--recipe: 'codegrep' is none of a2agent/],
    [['sft', ...model, '--out', file('text', '')], /--out .* is a file: name a directory/],
    [[], /needs one of sft, awr, grpo/],
  ]
  for (const [args, message] of cases) {
    const { status, stderr } = await run(command, args)
    t.match(stderr, message, args.join(' '))
    t.equal(status, 2, args.join(' '))
  }
})

t.test('--dry-run says what would be, and touches nothing', async t => {
  const { dir } = scratch(t)
  const { status, stderr, stdout } = await grpo(['--publish', join(dir, 'run'), '--recipe', 'codegrep', '--steps', '9', '--dry-run'], '')
  t.equal(status, 0)
  t.equal(stdout, '')
  t.match(stderr, /recipe codegrep: CodeGrep/)
  t.match(stderr, /--lora-rank 4 \(yours; the recipe has 32\)/)
  t.match(stderr, /64 prompts × 8 rollouts, lag 0 a step; 9 steps/)
  t.match(stderr, /memory: at most about [\d.]+ [MG]iB/)
  t.same(readdirSync(dir), [])
})

/** Bad lines behind a good step: what it says, and the status. The good step stands. */
const bad: [what: string, line: string, message: RegExp][] = [
  ['a line that is not JSON', '{"kind": "rollout",\n{}\n', /-:4: not JSON/],
  ['a wrong type', lines({ ...rollout(1, 0), reward: 'high' }), /-:4: not a good rollout record: reward: expected number/],
  ['an unknown version of a known kind', lines({ ...rollout(1, 0), v: 2 }), /-:4: .*version 2, and this cg knows version 1/],
  ['a rollout without tokens', lines({ ...rollout(1, 0), tokens: undefined }), /-:4: rollout g1.0 has no tokens \(it is text-only\)/],
  [
    'a rollout without advantage',
    lines({ ...rollout(1, 0), advantage: undefined }),
    /-:4: rollout g1.0 has no advantage: pipe it through cg-reward/,
  ],
  [
    'a token above the vocabulary',
    lines(rollout(1, 0, { tokens: { ...rollout(1, 0).tokens!, ids: Array(10).fill(5000) } })),
    /-:4: token id 5000 .*vocabulary ends at 2047/,
  ],
  [
    'another model’s rollout',
    lines(rollout(1, 0, { policy: { kind: 'native', name: 'x', model_sha256: 'e'.repeat(64) } })),
    /-:4: rollout g1.0 cannot be weighed: it was sampled from model e{12}/,
  ],
  ['a lost barrier', lines(rollout(1, 0), rollout(1, 1), barrier(3, 1).record), /-:6: the barrier of step 3 where that of step 1 was due/],
]
for (const [what, line, message] of bad)
  t.test(`${what}: status 1, the line is named, what was done stands`, async t => {
    const { dir } = scratch(t)
    const { status, stderr, stdout } = await grpo(['--publish', join(dir, 'run')], stepLines(0) + line + lines(barrier(1, 1).record))
    t.match(stderr, message)
    t.equal(status, 1)
    t.equal(stepsOf(stdout).length, 1)
    t.match(records(stdout).at(-1), { kind: 'end', ok: false })
    t.ok(existsSync(join(dir, 'run/v000001/adapter_model.safetensors')))
    t.match(JSON.parse(readFileSync(join(dir, 'run/trainer.json'), 'utf8')), { state: 'failed' })
  })

t.test('with -k a rollout that cannot be used becomes a fault; status 3', async t => {
  const { dir } = scratch(t)
  const input = lines(rollout(0, 0, { tokens: undefined }), rollout(0, 1), barrier(0, 1).record)
  const { status, stdout } = await grpo(['--out', join(dir, 'out'), '-k'], input)
  t.equal(status, 3)
  const [, fault, step] = records(stdout)
  t.match(fault, { kind: 'fault', code: 'E_NO_TOKENS', of: 'g0.0', stage: 'train grpo' })
  t.match(step, { kind: 'step', rollouts: 2 })
})

t.test('a rollout that failed before is no error: it counts in the denominator', async t => {
  const { dir } = scratch(t)
  const fault = rollout(0, 1, { stop: 'fault', tokens: undefined, advantage: undefined, reward: undefined, turns: [] })
  const { status, stdout } = await grpo(['--out', join(dir, 'out')], lines(rollout(0, 0), fault, barrier(0, 1).record))
  t.equal(status, 0)
  t.match(stepsOf(stdout)[0], { faults: 1, rollouts: 2, loss_tokens: 4 })
})

t.test('nothing to train on', async t => {
  const { dir } = scratch(t)
  t.equal((await grpo(['--out', join(dir, 'a')], '')).status, 0, 'an empty input is done')
  t.equal((await grpo(['--out', join(dir, 'b')], '{"some": "row"}\n')).status, 4)
})

t.test('early end: a run without its end, and one that was not ok', async t => {
  const { dir } = scratch(t)
  const opened = { kind: 'run', v: 1, id: 'r', stage: 'reward', command: 'cg-reward', version: '1', options: {}, seed: '0' }
  const ended = { kind: 'end', v: 1, run: 'r', stage: 'reward', in: 3, out: 3, faults: 0, ok: false, digest: '' }
  for (const [name, input] of Object.entries({ open: lines(opened), failed: lines(opened), cut: lines(opened) })) {
    const tail = name === 'failed' ? lines(ended) : name === 'cut' ? '{"kind": "roll' : ''
    const rows = stepLines(0) + lines(rollout(1, 0), rollout(1, 1))
    const { status, stderr, stdout } = await grpo(['--out', join(dir, name)], input + rows + tail)
    t.equal(status, 1, name)
    t.match(stderr, /upstream cg-reward ended early/)
    t.match(stderr, /the input ended early, within a step: its 1 groups were dropped/)
    t.equal(stepsOf(stdout).length, 1)
    t.notOk(existsSync(join(dir, name)), 'no adapter is handed out')
  }
})

t.test('a base model or adapter that cannot be used', async t => {
  const { dir } = scratch(t)
  const broken = join(dir, 'broken')
  cpSync('fixtures/model', broken, { recursive: true })
  writeFileSync(join(broken, 'model.safetensors'), readFileSync('fixtures/model/model.safetensors').subarray(0, 100_000))
  const first = await run(command, ['grpo', '--model', broken, '--out', join(dir, 'o')], { input: stepLines(0) })
  t.equal(first.status, 1)
  t.match(first.stderr, /model.safetensors/)

  const odd = join(dir, 'odd')
  mkdirSync(odd)
  t.equal((await grpo(['--out', odd], stepLines(0))).status, 0)
  const config = join(odd, 'adapter_config.json')
  writeFileSync(config, readFileSync(config, 'utf8').replace(/"r": ?4/, '"r": 6'))
  const second = await grpo(['--out', join(dir, 'o'), '--init-adapter', odd], stepLines(0))
  t.equal(second.status, 2, 'the LoRA options contradict it')
  const third = await run(command, ['grpo', '--model', 'fixtures/model', '--out', join(dir, 'o'), '--init-adapter', odd], {
    input: stepLines(0),
  })
  t.equal(third.status, 1)
  t.match(third.stderr, /lora_A.*\[4, 144\].*\[6, 144\]|lora_A/)
})

t.test('a directory in which a living process trains', async t => {
  const { dir } = scratch(t)
  const publish = join(dir, 'run')
  mkdirSync(publish)
  writeFileSync(join(publish, 'lock'), JSON.stringify(thisProcess()))
  const { status, stderr } = await grpo(['--publish', publish], stepLines(0))
  t.equal(status, 1)
  t.match(stderr, `is being trained by process ${process.pid} on`)
  t.same(readdirSync(publish), ['lock'], 'and it is left alone')
})

t.test('killed in the middle, the same command goes on to the same result', async t => {
  const { dir } = scratch(t)
  const all = [0, 1, 2, 3].map(step => stepLines(step))
  const [whole, killed] = [join(dir, 'whole'), join(dir, 'killed')]
  const six = await grpo(['--publish', whole, '--resume'], all.join(''))
  t.equal(six.status, 0)

  const { child, done } = start(command, ['grpo', ...model, '--publish', killed, '--resume'], { input: null })
  child.stdin!.write(all[0]! + all[1]!)
  await appears(t, join(killed, 'v000002'))
  child.stdin!.write(all[2]!.slice(0, 500))
  child.kill('SIGKILL')
  t.equal((await done).signal, 'SIGKILL')
  t.ok(existsSync(join(killed, 'lock')), 'the dead process leaves its lock')

  const again = await grpo(['--publish', killed, '--resume'], all.join(''))
  t.equal(again.status, 0)
  t.same(stepsOf(again.stdout), stepsOf(six.stdout))
  for (const file of ['adapter_model.safetensors', 'optimizer.safetensors', 'policy.json'])
    t.same(readFileSync(join(killed, 'v000004', file)), readFileSync(join(whole, 'v000004', file)), file)
  const differs = await grpo(['--publish', killed, '--resume', '--kl', '0.1'], all.join(''))
  t.equal(differs.status, 2)
  t.match(differs.stderr, /--kl is 0.1, and this run was begun with 0/)
})

t.test('SIGTERM: the step at hand is finished and committed', async t => {
  const { dir } = scratch(t)
  const publish = join(dir, 'run')
  const { child, done } = start(command, ['grpo', ...model, '--publish', publish], { input: null })
  child.stdin!.write(stepLines(0) + lines(rollout(1, 0)))
  await appears(t, join(publish, 'v000001'))
  child.kill('SIGTERM')
  const { signal, stdout, stderr } = await done
  t.equal(signal, 'SIGTERM')
  t.match(stderr, /SIGTERM: finishing what is in flight/)
  t.equal(stepsOf(stdout).length, 1)
  t.notOk(existsSync(join(publish, 'lock')))
  t.match(JSON.parse(readFileSync(join(publish, 'trainer.json'), 'utf8')), { state: 'failed' })
  t.equal((await grpo(['--publish', publish, '--resume'], stepLines(0) + stepLines(1))).status, 0)
})

t.test('sft in a pipe', async t => {
  const { dir, file } = scratch(t)
  const config = file('c.yaml', 'batch-size: 2\nepochs: 3\n')
  const out = join(dir, 'out')
  const { status, stdout, stderr } = await run(command, ['sft', ...model, '--out', out, '--config', config, '--progress', 'never'], {
    input: lines(rollout(0, 0), rollout(0, 1), rollout(1, 0), rollout(1, 1)),
  })
  t.equal(status, 0)
  t.equal(stepsOf(stdout).length, 6)
  t.match(stderr, /4 rollouts, 6 steps of 2/)
  t.same(readdirSync(out).sort(), ['adapter_config.json', 'adapter_model.safetensors'])
  copyFileSync(join(out, 'adapter_config.json'), join(dir, 'c.json'))
  t.match(JSON.parse(readFileSync(join(dir, 'c.json'), 'utf8')), { peft_type: 'LORA', r: 4, lora_alpha: 8 })
})

async function appears(t: Test, path: string): Promise<void> {
  for (let waited = 0; !existsSync(path); waited += 20) {
    if (waited > 120_000) {
      t.fail(`${path} did not appear`)
      return
    }
    await sleep(20)
  }
}
