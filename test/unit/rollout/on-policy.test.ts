import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Policy } from '#cg/policy/policy.js'
import { RecordFault } from '#cg/record/fault.js'
import type { Item, Output } from '#cg/record/item.js'
import { type RunFile, versionName } from '#cg/record/run-directory.js'
import type { Barrier, Rollout } from '#cg/record/schema.js'
import { type OnPolicyOptions, onPolicy } from '#cg/rollout/on-policy.js'
import { noCache } from '#cg/store/cache.js'
import { createLimit } from '#cg/tools/limit.js'
import { treeOf } from '../tools/a-tree.js'
import { answer, chat, saying, settings, task } from './a-policy.js'

const { tree, bare, commits } = await treeOf(t, { 'a.py': 'x = 1\n' })
const worktree = { commit: commits[0]!, tree: tree.id, bare }
const model = 'a'.repeat(64)
const digest = (n: number) => n.toString(16).padStart(64, '0')

const runFile = (over: Partial<RunFile> = {}): RunFile => ({
  run_id: 'f'.repeat(64),
  method: 'grpo',
  model_sha256: model,
  start_adapter_sha256: digest(0),
  prompts_per_step: 2,
  samples_per_prompt: 2,
  lag: 0,
  steps: 3,
  seed: '7',
  options: {},
  ...over,
})

/** A trainer's directory: `commit(k)` publishes version k by rename, as a trainer does. */
function directory(t: Test, run: RunFile | null = runFile()) {
  const dir = t.testdir()
  if (run) writeFileSync(join(dir, 'run.json'), JSON.stringify(run))
  const commit = (version: number, of: object = {}) => {
    const path = join(dir, versionName(version))
    mkdirSync(`${path}.new`)
    writeFileSync(join(`${path}.new`, 'policy.json'), JSON.stringify({ run_id: run?.run_id, version, sha256: digest(version), ...of }))
    renameSync(`${path}.new`, path)
  }
  return { dir, commit }
}

const instances = (...ids: string[]): Item[] =>
  ids.map((id, i) => ({
    kind: 'instance',
    record: { ...task, instance_id: id, problem_statement: id, worktree },
    origin: { file: '-', line: i + 1 },
  }))

type Fake = {
  context: Parameters<typeof onPolicy>[2] & { warnings: string[] }
  options: OnPolicyOptions
  opened: string[]
  stop: AbortController
}
function fake(dir: string, over: Partial<OnPolicyOptions> = {}, says: () => Policy = () => saying([answer('a.py')])): Fake {
  const opened: string[] = []
  const stop = new AbortController()
  const warnings: string[] = []
  const context = {
    signal: stop.signal,
    warnings,
    warn: (message: string) => warnings.push(message),
    detail: () => {},
    progress: () => {},
    cleanEnd: () => true,
    count: { cached: 0 },
    fault: (error: RecordFault) => {
      throw error
    },
  }
  const options: OnPolicyOptions = {
    dir,
    waitMs: 200,
    dropLast: false,
    modelName: 'm',
    model: {
      modelSha256: model,
      policy: async (_, name, provenance) => {
        opened.push(name)
        const { run_id, version, adapter_sha256 } = provenance!
        return { ...says(), identity: { kind: 'native', name, model_sha256: model, adapter_sha256, run_id, version } }
      },
    },
    sampler: { chat, limit: createLimit(8), cache: noCache, openTree: async () => tree },
    settings: settings(),
    stated: {},
    ...over,
  }
  return { context, options, opened, stop }
}

async function* from(items: Item[]) {
  yield* items
}
async function collect(stream: AsyncIterable<Output>, each: (output: Output, all: Output[]) => void = () => {}): Promise<Output[]> {
  const all: Output[] = []
  for await (const output of stream) {
    all.push(output)
    each(output, all)
  }
  return all
}
const barriers = (all: Output[]) => all.filter((o): o is Barrier => o.kind === 'barrier')
const rollouts = (all: Output[]) => all.filter((o): o is Rollout => o.kind === 'rollout')

t.test('step k is sampled with exactly version k, and takes P, n and steps from the trainer', async t => {
  const { dir, commit } = directory(t)
  const { context, options, opened } = fake(dir)
  commit(0)
  const all = await collect(onPolicy(from(instances('a', 'b', 'c')), options, context), output => {
    if (output.kind === 'barrier') commit((output as Barrier).step + 1)
  })
  t.same(
    all.map(o => o.kind),
    Array(3).fill(['rollout', 'rollout', 'rollout', 'rollout', 'barrier']).flat(),
  )
  t.match(
    barriers(all),
    [0, 1, 2].map(step => ({ step, version: step, groups: 2 })),
  )
  t.notOk(barriers(all).some(b => 'replayed' in b))
  t.same(opened, ['m@v000000', 'm@v000001', 'm@v000002'])
  t.same(
    rollouts(all).map(r => [r.group.index, r.sample, r.policy.version]),
    [0, 1, 2].flatMap(v => [0, 1].flatMap(index => [0, 1].map(sample => [index, sample, v]))),
  )
  t.equal(rollouts(all)[0]!.sampling.seed, '7', 'the trainer’s seed')
})

t.test('with a lag, steps run ahead by exactly that many', async t => {
  const { dir, commit } = directory(t, runFile({ lag: 2, steps: 5 }))
  const { context, options } = fake(dir)
  commit(0)
  const stream = onPolicy(from(instances('a', 'b', 'c')), options, context)
  const all = await collect(stream, (_, seen) => {
    const done = barriers(seen).length
    // The trainer is two steps behind: it publishes version k only after step k + 1 was written.
    if (seen.at(-1)!.kind === 'barrier' && done >= 3) commit(done - 2)
  })
  t.same(
    barriers(all).map(b => b.version),
    [0, 0, 0, 1, 2],
  )
})

t.test('steps that are committed are only named; the rest is as in a run that was not stopped', async t => {
  const whole = directory(t)
  const first = fake(whole.dir)
  whole.commit(0)
  const all = await collect(onPolicy(from(instances('a', 'b', 'c')), first.options, first.context), output => {
    if (output.kind === 'barrier') whole.commit((output as Barrier).step + 1)
  })

  const { dir, commit } = directory(t)
  for (const version of [0, 1, 2]) commit(version)
  mkdirSync(join(dir, 'v000003.new')) // a version that was being written when the trainer died
  const second = fake(dir)
  const resumed = await collect(onPolicy(from(instances('c', 'b', 'a')), second.options, second.context))
  t.match(barriers(resumed), [
    { step: 0, replayed: true },
    { step: 1, replayed: true },
    { step: 2, version: 2 },
  ])
  t.notOk('replayed' in barriers(resumed)[2]!)
  t.same(
    barriers(resumed).map(b => b.digest),
    barriers(all).map(b => b.digest),
  )
  const strip = (list: Output[]) => rollouts(list).map(({ timing, ...r }) => r)
  t.same(strip(resumed), strip(all).slice(8))
  t.same(second.opened, ['m@v000002'])
})

t.test('a run that is done is replayed from its barriers alone, and everything counts as cached', async t => {
  const { dir, commit } = directory(t)
  for (const version of [0, 1, 2, 3]) commit(version)
  const { context, options, opened } = fake(dir)
  const all = await collect(onPolicy(from(instances('a', 'b', 'c')), options, context))
  t.same(
    all.map(o => (o as Barrier).replayed),
    [true, true, true],
  )
  t.same(opened, [])
  t.equal(context.count.cached, 3)
})

/** As the trainer writes: nobody reads half of it. */
function whole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

t.test('a run that is done and is to have more steps: their number is what the trainer of this life says', async t => {
  const { dir, commit } = directory(t)
  for (const version of [0, 1, 2, 3]) commit(version)
  const beat = (state: string, n: number) =>
    whole(join(dir, 'trainer.json'), JSON.stringify({ pid: process.pid, host: 'elsewhere', start: '', state, seen: 0, beat: n }))
  beat('done', 9) // of the life before
  const { context, options } = fake(dir, { waitMs: 60_000 })
  let done = false
  const lives = (async () => {
    await sleep(100)
    beat('starting', 1)
    await sleep(100)
    whole(join(dir, 'run.json'), JSON.stringify(runFile({ steps: 4 })))
    for (let n = 2; !done; n++) {
      beat('waiting', n)
      await sleep(50)
    }
  })()
  const all = await collect(onPolicy(from(instances('a', 'b', 'c')), options, context)).finally(() => {
    done = true
  })
  await lives
  t.match(barriers(all), [
    { step: 0, replayed: true },
    { step: 1, replayed: true },
    { step: 2, replayed: true },
    { step: 3, version: 3 },
  ])
  t.equal(rollouts(all).length, 4)
})

t.test('without steps: one pass, the last barrier smaller, or left out', async t => {
  const { dir, commit } = directory(t, runFile({ steps: null, lag: 9 }))
  commit(0)
  const { context, options } = fake(dir)
  const all = await collect(onPolicy(from(instances('a', 'b', 'c')), options, context))
  t.same(
    barriers(all).map(b => b.groups),
    [2, 1],
  )
  const dropped = await collect(onPolicy(from(instances('a', 'b', 'c')), { ...options, dropLast: true }, context))
  t.same(
    barriers(dropped).map(b => b.groups),
    [2],
  )
})

t.test('other records pass first, in place', async t => {
  const { dir, commit } = directory(t, runFile({ steps: 1 }))
  commit(0)
  const { context, options } = fake(dir)
  const foreign: Item = { kind: 'foreign', bytes: Buffer.from('{}'), origin: { file: '-', line: 1 } }
  const all = await collect(onPolicy(from([foreign, ...instances('a')]), options, context))
  t.equal(all[0], foreign)
})

t.test('refusals', async t => {
  const attempt = async (
    t: Test,
    over: Partial<OnPolicyOptions>,
    expected: { message: string | RegExp; [field: string]: string | RegExp },
    run?: RunFile | null,
  ) => {
    const { dir, commit } = directory(t, run === undefined ? runFile() : run)
    commit(0)
    const { context, options } = fake(dir)
    await t.rejects(collect(onPolicy(from(instances('a')), { ...options, ...over }, context)), expected)
  }
  await t.test('no trainer', t =>
    attempt(t, {}, { code: 'E_NO_RUN', message: /no trainer has come for 0 s: start cg-train grpo --publish/ }, null),
  )
  await t.test('another number of prompts', t =>
    attempt(t, { stated: { promptsPerStep: 3 } }, { name: 'UsageError', message: /--prompts-per-step 3 contradicts .*run\.json \(2\)/ }),
  )
  await t.test('another number of samples', t =>
    attempt(t, { stated: { samples: 8 } }, { name: 'UsageError', message: /--samples-per-prompt 8/ }),
  )
  await t.test('another seed', t => attempt(t, { stated: { seed: '1' } }, { name: 'UsageError', message: /--seed 1/ }))
  await t.test('another model', t =>
    attempt(t, {}, { name: 'UsageError', message: /the model's digest/ }, runFile({ model_sha256: 'b'.repeat(64) })),
  )
  await t.test('instances that ended early', async t => {
    const { dir } = directory(t)
    const { context, options } = fake(dir)
    await t.rejects(collect(onPolicy(from(instances('a')), options, { ...context, cleanEnd: () => false })), {
      code: 'E_EARLY_END',
      message: /ended early/,
    })
  })
  await t.test('a version of another run', async t => {
    const { dir, commit } = directory(t)
    commit(0, { run_id: 'e'.repeat(64) })
    const { context, options } = fake(dir)
    await t.rejects(collect(onPolicy(from(instances('a')), options, context)), { code: 'E_OTHER_RUN' })
  })
  await t.test('no trainer on a run that was begun', async t => {
    const { dir } = directory(t)
    const { context, options } = fake(dir)
    await t.rejects(collect(onPolicy(from(instances('a')), options, context)), { code: 'E_NO_RUN', message: /raise --wait/ })
  })
  await t.test('run.json that is none', async t => {
    const { dir } = directory(t)
    writeFileSync(join(dir, 'run.json'), '{"run_id": 3}')
    const { context, options } = fake(dir)
    await t.rejects(collect(onPolicy(from(instances('a')), options, context)), {
      code: 'E_RUN_DIR',
      message: /run\.json: not what cg-train writes/,
    })
  })
})

t.test('an abort while waiting ends quietly, and no barrier stands for a step that is not whole', async t => {
  const { dir, commit } = directory(t)
  commit(0)
  const { context, options, stop } = fake(dir)
  const all = await collect(onPolicy(from(instances('a', 'b', 'c')), options, context), output => {
    if (output.kind === 'barrier') setTimeout(() => stop.abort(new Error('SIGTERM')), 50)
  })
  t.equal(barriers(all).length, 1)
  t.equal(rollouts(all).length, 4)
})

t.test('a member that fails keeps its place in the step', async t => {
  const { dir, commit } = directory(t, runFile({ steps: 1 }))
  commit(0)
  const { context, options } = fake(dir, {}, () =>
    saying([
      request => {
        if (request.sample === 1) throw new RecordFault('E_NAN', 'not finite')
        return answer('a.py')
      },
    ]),
  )
  const fault = { kind: 'fault', v: 1, stage: 'rollout', code: 'E_NAN', message: '', of: '', retry: false } as const
  const all = await collect(onPolicy(from(instances('a', 'b')), options, { ...context, fault: () => fault }))
  t.same(
    all.map(o => (o.kind === 'rollout' ? (o as Rollout).stop : o.kind)),
    ['answer', 'fault', 'fault', 'answer', 'fault', 'fault', 'barrier'],
  )
})
