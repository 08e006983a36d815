import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import type { Adapter, Model } from '#cg/engine/types.js'
import { modelDigest } from '#cg/model/model-digest.js'
import type { Item, Known } from '#cg/record/item.js'
import type { PolicyFile, RunFile } from '#cg/record/run-directory.js'
import type { Step } from '#cg/record/schema.js'
import { fakeRuntime, model, policyRun, scratchDir, tensors, timeless } from './in-process.js'
import { barrier, item, type Made, madeRollout, stream } from './made-rollouts.js'

const kind = 'ref-2/fp32'
const loaded: Model = await loadEngine().loadModel(model, { backend: 'reference', threads: 1 })
t.teardown(() => loaded.dispose())
t.equal(loaded.info.logprobKind, kind)

/** A prompt of 6 tokens and 4 generated ones, in two turns; what it says is of no matter. */
function ids(seed: number): number[] {
  return [2042, 84, 300, 301, 302, 198, ...[0, 1, 2, 3].map(i => 200 + ((seed * 37 + i * 11) % 1500))]
}
const spans: [number, number, number][] = [
  [6, 8, 0],
  [8, 10, 1],
]

async function logprobs(tokens: number[], adapter: Adapter | null = null): Promise<number[]> {
  const sequence = { ids: Int32Array.from(tokens), spans: Int32Array.from(spans.flatMap(span => span.slice(0, 2))), temperature: 1 }
  return Array.from((await loaded.score({ sequences: [sequence], adapter })).logprobs)
}

/** A group of two, with these advantages; rewards follow them. Sampled from the base model, as far as log-probs can tell. */
async function rewarded(name: string, index: number, advantages: number[], over: Made = {}): Promise<Known<'rollout'>[]> {
  return Promise.all(
    advantages.map(async (advantage, sample) => {
      const tokens = ids(index * 10 + sample)
      return item(
        madeRollout({
          id: `${name}.${sample}`,
          group: { id: name, size: advantages.length, index },
          sample,
          tokens: { ids: tokens, spans, logprobs: await logprobs(tokens), logprob_kind: kind },
          advantage,
          reward: Math.max(0, advantage),
          ...over,
        }),
      )
    }),
  )
}

/** Steps of one group each, with barriers. */
async function steps(count: number, over: Made = {}): Promise<Item[]> {
  const all: Item[] = []
  for (let k = 0; k < count; k++) all.push(...(await rewarded(`g${k}`, 0, k % 2 ? [1, -1] : [-0.5, 0.5], over)), barrier(k, 1))
  return all
}
const readRun = (dir: string) => JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8')) as RunFile
const refused = { kind: 'native' as const, name: 'm', model_sha256: 'f'.repeat(64) }

t.test('a step makes rewarded rollouts likelier, and the others less so', async t => {
  for (const aggregation of ['grpo', 'dr_grpo', 'gspo', 'cispo']) {
    const out = join(scratchDir(t), 'out')
    const [step] = await policyRun(stream(await rewarded('g', 0, [1, -1]), barrier(0, 1)), { out, aggregation })
    const adapter = await loaded.loadAdapter(out)
    const sum = async (sample: number, a: Adapter | null) => (await logprobs(ids(sample), a)).reduce((x, y) => x + y, 0)
    t.ok((await sum(0, adapter)) > (await sum(0, null)), `${aggregation}: advantage 1`)
    t.ok((await sum(1, adapter)) < (await sum(1, null)), `${aggregation}: advantage −1`)
    adapter.dispose()
    t.match(step, {
      step: 0,
      version: 1,
      rollouts: 2,
      groups: 1,
      zero_variance: 0,
      reward: 0.5,
      turns: 2,
      calls_per_turn: 1,
      clip: 0,
      kl: 0,
      lr: 1e-3,
    })
    t.match(step!.mismatch, { kl: 0, mult_prob_error: 1, max: 0 }, 'recorded log-probs are the trainer’s own, bit for bit')
    t.ok(step!.unique_tokens < step!.tokens, 'the shared prompt is computed once')
    if (aggregation === 'grpo') t.ok(Math.abs(step!.loss!) < 1e-9, 'on-policy the loss is 0, the gradient is not')
    t.ok(step!.grad_norm! > 0)
  }
})

t.test('6 steps are 3 steps, and 3 more after a resume, bit for bit', async t => {
  const [whole, halves] = [join(scratchDir(t), 'a'), join(scratchDir(t), 'b')]
  const options = { kl: 0.05, weightDecay: 0.1, schedule: 'linear', warmup: 1, steps: 6 }
  const all = await steps(6)
  const six = await policyRun(stream(all), { ...options, publish: whole })
  const interrupted = policyRun(stream(all.slice(0, 10)), { ...options, publish: halves }, fakeRuntime({ cleanEnd: () => false }))
  await t.rejects(interrupted, { code: 'E_EARLY_END' }, 'cut within the fourth step')
  t.match(JSON.parse(readFileSync(join(halves, 'trainer.json'), 'utf8')), { state: 'failed', seen: 3 })

  // the rollout stage names the committed steps by their barriers alone
  const replayed = [0, 1, 2].map(k => barrier(k, 1, { replayed: true }))
  const runtime = fakeRuntime()
  const resumed = await policyRun(stream(replayed, all.slice(9)), { ...options, publish: halves, resume: true }, runtime)
  t.same(resumed.map(timeless), six.map(timeless))
  t.same(tensors(halves, 'v000006'), tensors(whole, 'v000006'))
  const cursor = (dir: string) => JSON.parse(readFileSync(join(dir, 'v000006/cursor.json'), 'utf8'))
  t.same(cursor(halves), cursor(whole))
  t.match(cursor(whole), { steps: 6, rows: 12 })
  t.equal(readRun(halves).run_id, readRun(whole).run_id)
  t.same(readFileSync(join(halves, 'steps.ndjson'), 'utf8').split('\n').filter(Boolean).length, 6)

  // a file comes whole: what is committed is only compared
  t.same((await policyRun(stream(all), { ...options, publish: halves, resume: true })).map(timeless), six.map(timeless))
})

t.test('threads do not change a bit', async t => {
  const all = [...(await rewarded('a', 0, [1, -1])), ...(await rewarded('b', 1, [0.3, 0.7])), barrier(0, 2)]
  const results = []
  for (const threads of [1, 2, 4]) {
    const publish = join(scratchDir(t), 'run')
    results.push([(await policyRun(stream(all), { publish, threads, kl: 0.1 })).map(timeless), tensors(publish, 'v000001')])
  }
  t.same(results[1], results[0])
  t.same(results[2], results[0])
})

t.test('a step in which nothing can be learnt makes its version', async t => {
  const publish = join(scratchDir(t), 'run')
  const runtime = fakeRuntime()
  const same = await rewarded('a', 0, [0, 0])
  const faulty = await rewarded('b', 0, [0, 0], { stop: 'fault', tokens: undefined, reward: undefined, advantage: undefined })
  const made = await policyRun(stream(same, barrier(0, 1), faulty, barrier(1, 1), barrier(2, 1)), { publish }, runtime)
  t.match(made, [
    { zero_variance: 1, faults: 0, grad_norm: 0 },
    { zero_variance: 1, faults: 2, grad_norm: 0, tokens: 0, reward: null },
    { rollouts: 0, groups: 0, tokens: 0 },
  ])
  t.ok(runtime.said.some(line => /step 0: in every group all rewards are equal/.test(line)))
  t.same(
    readdirSync(publish).filter(name => name.startsWith('v')),
    ['v000002', 'v000003'],
  )
})

t.test('NaN or infinity: skipped and said, three in a row end the run', async t => {
  const publish = join(scratchDir(t), 'run')
  const huge = async (k: number) => [...(await rewarded(`h${k}`, 0, [3e38, -3e38])), barrier(k, 1)]
  const runtime = fakeRuntime()
  const run = policyRun(stream(await huge(0), await steps(0), await huge(1), await huge(2), await huge(3)), { publish, keep: 9 }, runtime)
  await t.rejects(run, { code: 'E_NAN', message: /in 3 steps in a row: lower --lr/ })
  t.match(runtime.warned, [/step 0: NaN or infinity in its loss or gradient: skipped/, /step 1/, /step 2/])
  const logged = readFileSync(join(publish, 'steps.ndjson'), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Step)
  t.match(logged[0], { skipped: true, version: 1 })
  const adapter = (version: string) => readFileSync(join(publish, version, 'adapter_model.safetensors'))
  t.same(adapter('v000001'), adapter('v000000'), 'the adapter stays as it was')
})

t.test('log-probs of other arithmetic are computed again with the version that sampled', async t => {
  const sha256 = await modelDigest(model)
  const foreign = async (policy: object, over: Made = {}) => {
    const rows = await rewarded('g', 0, [1, -1], { policy: { kind: 'native', name: 'm', ...policy }, ...over })
    for (const { record } of rows) record.tokens = { ...record.tokens!, logprobs: [-9, -9, -9, -9], logprob_kind: 'other-1/bf16' }
    return [...rows, barrier(0, 1)]
  }
  const base = { model_sha256: sha256 }
  const [step] = await policyRun(stream(await foreign(base)), { out: join(scratchDir(t), 'o') })
  t.match(step, { rescored: 2, mismatch: { max: 0 } }, 'the base model')

  const publish = join(scratchDir(t), 'run')
  await policyRun(stream(await steps(1)), { publish })
  const { sha256: adapter } = JSON.parse(readFileSync(join(publish, 'v000001', 'policy.json'), 'utf8')) as PolicyFile
  const second = (await foreign({ ...base, adapter_sha256: adapter })).slice(0, 2)
  const again = await policyRun(stream(await steps(1), second, barrier(1, 1)), { publish, resume: true })
  t.match(again[1], { rescored: 2, mismatch: { max: 0 } }, 'a version of this run')

  const cases: [object, RegExp][] = [
    [{ ...base, adapter_sha256: 'a'.repeat(64) }, /the adapter that sampled it \(aaaaaaaaaaaa\) is not among this run's versions/],
    [{}, /kind other-1\/bf16, ours of ref-2\/fp32, and it does not say which model/],
    [refused, /it was sampled from model ffffffffffff/],
  ]
  for (const [policy, message] of cases)
    await t.rejects(policyRun(stream(await foreign(policy)), { out: join(scratchDir(t), 'o') }), { code: 'E_POLICY', message })
})

t.test('KL is measured from the start adapter, or from the base model', async t => {
  const dir = scratchDir(t)
  const start = join(dir, 'start')
  await policyRun(stream(await steps(2)), { out: start, lr: 1e-2 })
  const kl = async (options: object) =>
    (await policyRun(stream(await steps(1)), { out: join(dir, 'o'), kl: 0.1, initAdapter: start, ...options }))[0]!.kl!
  t.equal(await kl({}), 0, 'start is the default after --init-adapter')
  t.ok((await kl({ klRef: 'base' })) > 1e-6)
  const publish = join(dir, 'run')
  await policyRun(stream(await steps(4)), { publish, kl: 0.1, initAdapter: start })
  t.same(
    readdirSync(publish).filter(name => name.startsWith('v')),
    ['v000000', 'v000003', 'v000004'],
    'the reference stays',
  )
})

t.test('what is kept', async t => {
  const kept = async (options: object, count = 6) => {
    const publish = join(scratchDir(t), 'run')
    await policyRun(stream(await steps(count)), { publish, ...options })
    const versions = readdirSync(publish).filter(name => name.startsWith('v'))
    return versions.map(name => `${Number(name.slice(1))}${existsSync(join(publish, name, 'optimizer.safetensors')) ? 'o' : ''}`).join(' ')
  }
  t.equal(await kept({}), '5o 6o', 'lag + 2')
  t.equal(await kept({ lag: 1 }), '4 5o 6o')
  t.equal(await kept({ keep: 4 }), '3 4 5o 6o')
  t.equal(await kept({ keep: 99 }, 2), '0 1o 2o')
})

t.test('on-policy: the version that sampled is checked, and an earlier end of the input is one', async t => {
  const publish = join(scratchDir(t), 'run')
  await policyRun(stream(await steps(1)), { publish })
  const { run_id } = readRun(publish)
  const policy = { kind: 'native' as const, name: 'm', run_id, version: 0 }
  const stale = [...(await rewarded('x', 0, [1, -1], { policy })), barrier(1, 1)]
  await t.rejects(policyRun(stream(await steps(1), stale), { publish, resume: true }), {
    code: 'E_STALE',
    message: /version 0 in step 1, which takes version 1/,
  })
  const runtime = fakeRuntime()
  await policyRun(stream(await steps(1)), { publish, resume: true, steps: 5 }, runtime)
  t.same(runtime.warned, ['the input ended after 1 of 5 steps'])
  t.equal(readRun(publish).steps, 5, 'steps may change where nothing depends on them')
  t.equal(readRun(publish).run_id, run_id)
})

t.test('a resume under other conditions is refused, and says which', async t => {
  const publish = join(scratchDir(t), 'run')
  const upstream = (options: object) => () => [
    {
      kind: 'run' as const,
      v: 1 as const,
      id: 'i',
      stage: 'reward',
      command: 'cg-reward',
      version: '1',
      options: { ...options },
      seed: '0',
    },
  ]
  await policyRun(stream(await steps(2)), { publish }, fakeRuntime({ upstream: upstream({ scheme: 'codegrep-v3' }) }))
  const again = async (options: object, over: object = {}, rows?: Item[]) =>
    policyRun(stream(rows ?? (await steps(2))), { publish, resume: true, ...options }, fakeRuntime(over))
  const usage: [object, object, RegExp][] = [
    [{ lr: 2e-3 }, {}, /^--lr is 0.002, and this run was begun with 0.001/],
    [{ promptsPerStep: 3 }, {}, /^--prompts-per-step is 3, and this run was begun with 8/],
    [{ schedule: 'cosine', steps: 9 }, {}, /^--schedule is cosine/],
    [{}, { seed: '7' }, /^--seed is 7, and this run was begun with 0/],
    [
      {},
      { upstream: upstream({ scheme: 'codegrep-v1' }) },
      /^--scheme is codegrep-v1, and cg-reward of this run was begun with codegrep-v3/,
    ],
    [{ resume: false }, {}, /is not empty: add --resume/],
  ]
  for (const [options, over, message] of usage) await t.rejects(again(options, over), { name: 'UsageError', message })
  const other = [...(await rewarded('g0', 0, [1, -1])), barrier(0, 1, { digest: 'e'.repeat(64) })]
  await t.rejects(again({}, {}, other), { code: 'E_DATA', message: /^step 0 was made from other data \(000000000000, now eeeeeeeeeeee\)/ })
  await t.rejects(
    again(
      {},
      {},
      [0, 1, 2].map(k => barrier(k, 1, { replayed: true })),
    ),
    { code: 'E_DATA', message: /^step 2 is said to be done, and this run has 2 steps/ },
  )
  t.equal((await again({}, { upstream: upstream({ scheme: 'codegrep-v3' }) })).length, 2)
})

t.test('a crash between two writes is mended', async t => {
  const publish = join(scratchDir(t), 'run')
  const all = await steps(3)
  const three = await policyRun(stream(all), { publish })
  const resume = async () => (await policyRun(stream(all), { publish, resume: true })).map(timeless)
  const log = join(publish, 'steps.ndjson')
  const whole = readFileSync(log, 'utf8')
  writeFileSync(log, whole.slice(0, -20))
  t.same(await resume(), three.map(timeless), 'the log was cut')
  t.equal(readFileSync(log, 'utf8'), whole)
  cpSync(join(publish, 'v000003'), join(publish, '.v000004.unfinished'), { recursive: true })
  t.same(await resume(), three.map(timeless), 'a version was half-written')
  t.notOk(existsSync(join(publish, '.v000004.unfinished')))
  rmSync(join(publish, 'v000003'), { recursive: true })
  t.same(await resume(), three.map(timeless), 'the log was ahead')
  const begun = join(scratchDir(t), 'begun')
  await policyRun(stream(await steps(1)), { publish: begun })
  for (const name of ['v000000', 'v000001', 'steps.ndjson']) rmSync(join(begun, name), { recursive: true, force: true })
  t.equal((await policyRun(stream(await steps(1)), { publish: begun, resume: true })).length, 1, 'run.json stood alone')
  rmSync(join(publish, 'v000003', 'optimizer.safetensors'))
  await t.rejects(resume(), { code: 'E_RUN', message: /optimizer.safetensors is gone/ })
})

t.test('directories that hold something else', async t => {
  const dir = scratchDir(t)
  writeFileSync(join(dir, 'notes.txt'), 'mine')
  await t.rejects(policyRun(stream(), { publish: dir }), { name: 'UsageError', message: /is not empty: add --resume/ })
  await t.rejects(policyRun(stream(), { publish: dir, resume: true }), { name: 'UsageError', message: /holds notes.txt, and no run/ })
  await t.rejects(policyRun(stream(), { out: dir }), { name: 'UsageError', message: /--out .* holds notes.txt/ })
  await t.rejects(policyRun(stream(), { out: join(dir, 'o'), model: dir }), {
    code: 'E_CHECKPOINT',
    message: /config.json: .*name a Hugging Face checkpoint/,
  })
  writeFileSync(join(dir, 'run.json'), '{')
  await t.rejects(policyRun(stream(), { publish: dir, resume: true }), { code: 'E_RUN', message: /run.json is damaged/ })
})
