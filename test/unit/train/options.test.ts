import t from 'tap'
import grpo from '#cg/cli/train-grpo.js'
import sft from '#cg/cli/train-sft.js'
import type { Step } from '#cg/record/schema.js'
import { followBest } from '#cg/train/best.js'
import { conductArguments } from '#cg/train/eval-pipe.js'
import { applyRecipe, recipes } from '#cg/train/recipes.js'
import { decidingOptions, refuseOtherOptions, runId } from '#cg/train/run-identity.js'
import { createSchedule, needsTotal } from '#cg/train/schedule.js'
import { checkOptions, loraConfig, policyLoss } from '#cg/train/settings.js'

type Values = Record<string, unknown>
const defaults = (options: Values): Values =>
  Object.fromEntries(Object.entries(options).map(([name, o]) => [name, (o as { default: unknown }).default]))
const g = (over: Values = {}) => ({ ...defaults(grpo.options), model: 'm', out: 'o', ...over }) as never

t.test('what options must have together', async t => {
  const cases: [Values, RegExp][] = [
    [{ model: undefined }, /--model is missing/],
    [{ out: undefined }, /neither --out nor --publish/],
    [{ resume: true }, /--resume needs --publish/],
    [{ evalEvery: 5 }, /--eval-every and --eval-file go together/],
    [{ evalFile: 'f' }, /--eval-every and --eval-file go together/],
    [{ out: 'a/b', publish: 'a' }, /--out and --publish are within one another/],
    [{ out: 'a', publish: './a/' }, /--out and --publish are within one another/],
    [{ out: 'a', initAdapter: 'a' }, /--out would replace --init-adapter a/],
    [{ out: '.', model: 'm' }, /--out would replace --model m/],
    [{ choose: 'best' }, /--choose best needs --publish and --eval-file/],
  ]
  for (const [over, message] of cases) t.throws(() => checkOptions(g(over)), { name: 'UsageError', message })
  checkOptions(g())
  checkOptions(g({ out: 'a', publish: 'ab' }))
})

t.test('LoRA targets', async t => {
  const targets = (loraTargets: string) => loraConfig(g({ loraTargets })).targets
  t.equal(targets('all').length, 7)
  t.same(targets('v, q'), ['q_proj', 'v_proj'], 'in the model’s order')
  t.same(targets('down_proj'), ['down_proj'])
  t.throws(() => targets('q,lm_head'), { message: /'lm_head' is none of q, k, v, o, gate, up, down/ })
})

t.test('the upper epsilon is the lower one unless it is given', async t => {
  t.equal(policyLoss(g({ epsilonLow: 0.1 })).epsilonHigh, 0.1)
  t.equal(policyLoss(g({ epsilonLow: 0.1, epsilonHigh: 0.28 })).epsilonHigh, 0.28)
})

t.test('schedules', async t => {
  t.same(
    createSchedule({ schedule: 'cosine', lr: 1, warmup: 0.05 }, 30, 'x'),
    { name: 'cosine', lr: 1, warmup: 2, total: 30 },
    'a share is rounded up',
  )
  t.same(createSchedule({ schedule: 'constant', lr: 1, warmup: 10 }, undefined, 'x'), {
    name: 'constant',
    lr: 1,
    warmup: 10,
    total: undefined,
  })
  t.throws(() => createSchedule({ schedule: 'cosine', lr: 1, warmup: 0 }, undefined, '--steps'), {
    message: '--schedule cosine ends with the last step, and a stream has no length: give --steps',
  })
  t.throws(() => createSchedule({ schedule: 'constant', lr: 1, warmup: 0.1 }, undefined, '--steps'), {
    message: /--warmup 0.1 is a share/,
  })
  t.throws(() => createSchedule({ schedule: 'linear', lr: 1, warmup: 1.5 }, 10, ''), { message: /--warmup 1.5: below 1 a share/ })
  t.throws(() => createSchedule({ schedule: 'linear', lr: 1, warmup: 11 }, 10, ''), { message: /longer than the 10 steps/ })
  t.same(
    [
      needsTotal({ schedule: 'constant', warmup: 5 }),
      needsTotal({ schedule: 'constant', warmup: 0.5 }),
      needsTotal({ schedule: 'linear', warmup: 0 }),
    ],
    [false, true, true],
  )
})

t.test('recipes', async t => {
  const all = { ...defaults(grpo.options), ...defaults(sft.options) }
  for (const [name, recipe] of Object.entries(recipes))
    for (const method of ['sft', 'awr', 'grpo'] as const)
      for (const option of Object.keys(recipe[method] ?? {})) t.ok(option in all, `${name} ${method}: ${option} is an option`)

  const given = new Set(['lr', 'kl'])
  const { options, lines } = applyRecipe('codegrep', 'grpo', g({ lr: 1e-3, kl: 0.02 }) as Values, name => given.has(name))
  t.match(options, {
    lr: 1e-3,
    loraRank: 32,
    loraAlpha: 64,
    schedule: 'cosine',
    warmup: 0.05,
    promptsPerStep: 64,
    kl: 0.02,
    klRef: 'base',
    beta2: 0.95,
    weightDecay: 0.1,
  })
  t.ok(lines.includes('  --lr 0.001 (yours; the recipe has 0.000005)'), 'an explicit flag wins and is said')
  t.ok(lines.includes('  --lora-rank 32'))
  t.ok(lines.includes('  --kl 0.02'))
  t.throws(() => applyRecipe('codegrep', 'awr', {}, () => false), {
    name: 'UsageError',
    message: /--recipe codegrep says nothing about awr: one of a2agent does/,
  })
  t.equal(
    applyRecipe('a2agent', 'sft', { epochs: undefined, steps: 3 } as Values, name => name === 'steps').options.epochs,
    undefined,
    'the user’s steps replace epochs',
  )
})

t.test('what decides a run', async t => {
  const facts = { initAdapterSha256: null, logprobKind: 'k', maxRowsPerPass: 64 }
  const of = (over: Values, other = {}) => decidingOptions('grpo', g(over), { ...facts, ...other })
  t.same(
    of({}),
    of({ threads: 4, keep: 9, out: 'x', publish: 'y', evalEvery: 3, allowPartial: true }),
    'not places, threads, or what is shown and kept',
  )
  t.same(of({}), of({ steps: 7 }), 'steps do not, while the learning rate is constant')
  t.not(String(JSON.stringify(of({ schedule: 'cosine', steps: 7 }))), JSON.stringify(of({ schedule: 'cosine', steps: 8 })))
  t.same(of({ loraRank: 4 }, { initAdapterSha256: 'a' }), of({}, { initAdapterSha256: 'a' }), 'a start adapter brings its own shape')
  for (const over of [
    { lr: 1 },
    { lag: 1 },
    { kl: 0.1 },
    { aggregation: 'dapo' },
    { promptsPerStep: 3 },
    { weightDecay: 0.5 },
    { loraRank: 4 },
    { epsilonHigh: 0.3 },
  ])
    t.not(JSON.stringify(of(over)), JSON.stringify(of({})), Object.keys(over)[0]!)

  const run = { model_sha256: 'm', start_adapter_sha256: 's', options: of({}), seed: '0' }
  t.match(runId(run), /^[0-9a-f]{64}$/)
  t.not(runId(run), runId({ ...run, seed: '1' }))
  t.throws(() => refuseOtherOptions(of({}), of({ lr: 0.5 }), 'this run'), {
    name: 'UsageError',
    message: '--lr is 0.5, and this run was begun with 0.00001: give the same options, or another directory',
  })
  t.throws(() => refuseOtherOptions({ a: null }, { a: 1 }, 'x'), { message: /--a is 1, and x was begun with not set/ })
  refuseOtherOptions(of({}), of({}), 'this run')
})

t.test('the best version', async t => {
  const step = (version: number, name?: string, value?: number) =>
    ({ version, ...(name ? { eval: { name, value, n: 1 } } : {}) }) as unknown as Step
  const bestVersion = (steps: Step[]) => followBest(steps).version()
  t.equal(bestVersion([]), undefined)
  t.equal(bestVersion([step(1), step(2)]), undefined)
  t.equal(bestVersion([step(1, 'f05', 0.2), step(2), step(3, 'f05', 0.5), step(4, 'f05', 0.5)]), 3, 'the earliest of equal ones')
  t.equal(bestVersion([step(1, 'loss', 0.2), step(2, 'loss', 0.1), step(3, 'loss', 0.4)]), 2)
  const later = followBest([step(1, 'f05', 0.2)])
  later.add(step(2, 'f05', 0.1))
  t.equal(later.version(), 1)
  later.add(step(3, 'f05', 0.3))
  t.equal(later.version(), 3, 'of an earlier life of the run and this one')
})

t.test('what measures goes by the limits of what trains', async t => {
  const run = (stage: string, options: object) =>
    ({ kind: 'run', v: 1, id: 'i', stage, command: `cg-${stage}`, version: '1', options, seed: '0' }) as never
  const rollout = run('rollout', {
    'max-tokens': 300,
    'grep-glob': '*.py',
    temperature: 0.7,
    'samples-per-prompt': 8,
    greedy: false,
    prompt: undefined,
  })
  t.same(conductArguments([run('reward', { scheme: 'x' }), rollout]), ['--max-tokens=300', '--grep-glob=*.py'], 'not how they are drawn')
  t.same(conductArguments([]), [])
})
