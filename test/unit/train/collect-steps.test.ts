import t from 'tap'
import type { Item } from '#cg/record/item.js'
import { type CollectPlan, collectSteps, type StepRows } from '#cg/train/collect-steps.js'
import { barrier, group, item, madeRollout, stream } from './made-rollouts.js'

const runId = 'r'.repeat(64)

function plan(over: Partial<CollectPlan> = {}): CollectPlan {
  return {
    promptsPerStep: 2,
    samplesPerPrompt: 2,
    lag: 0,
    runId,
    allowPartial: false,
    cleanEnd: () => true,
    aborted: () => false,
    warn: () => {},
    ...over,
  }
}

/** Each step as `step/asked: ids`. */
async function steps(items: AsyncIterable<Item>, over: Partial<CollectPlan> = {}): Promise<string[]> {
  const out: string[] = []
  for await (const found of collectSteps(items, plan(over))) out.push(found.kind === 'foreign' ? `- ${found.bytes}` : show(found))
  return out
}

function show({ step, asked, groups, replayed }: StepRows): string {
  const ids = groups.map(g => `${g.index}(${g.rollouts.map(r => r.record.id).join(' ')})`).join(' ')
  return `${step}/${asked}${replayed ? ' replayed' : ''}: ${ids}`
}

const a = () => group('a', 0, 2)
const b = () => group('b', 1, 2)
const c = () => group('c', 0, 2)
const ofRun = (version: number) => ({ policy: { kind: 'native' as const, name: 'm', run_id: runId, version } })

t.test('up to a barrier', async t =>
  t.same(await steps(stream(a(), b(), barrier(0, 2), c(), barrier(1, 1))), ['0/4: 0(a.0 a.1) 1(b.0 b.1)', '1/2: 0(c.0 c.1)']),
)

t.test('without barriers by P groups, numbered as they come', async t =>
  t.same(await steps(stream(a(), group('b', 0, 2), c())), ['0/4: 0(a.0 a.1) 1(b.0 b.1)', '1/2: 0(c.0 c.1)']),
)

t.test('a barrier wins over the default of --prompts-per-step', async t => {
  const other = { policy: { kind: 'native' as const, name: 'm', run_id: 'o'.repeat(64), version: 0 } }
  const three = () => ['a', 'b', 'c'].map((id, index) => group(id, index, 1, other))
  t.same(await steps(stream(...three(), barrier(0, 3))), ['0/3: 0(a.0) 1(b.0) 2(c.0)'])
  t.same(await steps(stream(...three())), ['0/2: 0(a.0) 1(b.0)', '1/1: 0(c.0)'], 'none came after all')
  t.same((await steps(stream(a(), barrier(0, 1), b(), barrier(1, 2)))).length, 2)
})

t.test('what was dropped on the way stays in the denominator', async t =>
  t.same(await steps(stream(group('a', 0, 4, {}, 3), barrier(0, 3))), ['0/12: 0(a.0)']),
)

t.test('a step of which nothing arrived is a step', async t =>
  t.same(await steps(stream(barrier(0, 3)), { samplesPerPrompt: 8 }), ['0/24: ']),
)

t.test('replayed barriers', async t =>
  t.same(await steps(stream(barrier(0, 2, { replayed: true }), a(), barrier(1, 1))), ['0/4 replayed: ', '1/2: 0(a.0 a.1)']),
)

t.test('other lines pass in their places', async t => {
  const foreign: Item = { kind: 'foreign', bytes: Buffer.from('{}'), origin: { file: 'in', line: 1 } }
  t.same(await steps(stream(foreign, a(), barrier(0, 1))), ['- {}', '0/2: 0(a.0 a.1)'])
})

t.test('the digest is the barrier’s, else that of the ids', async t => {
  const digests = async (items: AsyncIterable<Item>) => {
    const out: string[] = []
    for await (const found of collectSteps(items, plan())) if (found.kind === 'step') out.push(found.digest)
    return out
  }
  t.same(await digests(stream(a(), barrier(0, 1))), ['0'.repeat(64)])
  const [one] = await digests(stream(a(), b()))
  t.match(one, /^[0-9a-f]{64}$/)
  t.same(await digests(stream(a(), b())), [one])
  t.not((await digests(stream(a(), c())))[0], one)
})

t.test('a last step that is smaller than --prompts-per-step is fine, an earlier one is not', async t => {
  t.same((await steps(stream(a(), b(), barrier(0, 2), c(), barrier(1, 1)), { promptsStated: 2 })).length, 2)
  await t.rejects(steps(stream(a(), barrier(0, 1), b()), { promptsStated: 2 }), {
    code: 'E_BARRIER',
    message: 'step 0 has 1 groups, and --prompts-per-step says 2: leave the option out, the input has barriers',
  })
  await t.rejects(steps(stream(a(), b(), barrier(0, 2)), { promptsStated: 1 }), { code: 'E_BARRIER' })
})

t.test('early end', async t => {
  const early = { cleanEnd: () => false }
  const seen: string[] = []
  const run = async (items: AsyncIterable<Item>, over: Partial<CollectPlan>) => {
    seen.length = 0
    for await (const found of collectSteps(items, plan(over))) if (found.kind === 'step') seen.push(show(found))
  }
  await t.rejects(run(stream(a(), barrier(0, 1), b()), early), {
    code: 'E_EARLY_END',
    message: /^the input ended early, within a step: its 1 groups were dropped; run the same command again with --resume/,
  })
  t.same(seen, ['0/2: 0(a.0 a.1)'], 'whole steps are trained, the partial one is dropped')
  await t.rejects(run(stream(a(), barrier(0, 1)), early), { code: 'E_EARLY_END' }, 'an early end is one even between steps')
  await t.rejects(run(stream(a(), b()), early), { code: 'E_EARLY_END' })
  t.equal(seen.length, 1, 'P whole groups are a whole step')
  const ours = [group('a', 0, 2, ofRun(0)), group('b', 1, 2, ofRun(0))]
  for (const over of [early, {}]) {
    await t.rejects(run(stream(...ours), over), { code: 'E_EARLY_END', message: /its 2 groups were dropped/ })
    t.same(seen, [], 'but on-policy only its barrier makes it one')
  }
  await run(stream(a(), barrier(0, 1), b()), { ...early, allowPartial: true })
  t.equal(seen.length, 2)
  await run(stream(a()), { ...early, aborted: () => true })
  t.same(seen, [], 'interrupted: nothing of a partial step, and no complaint')
})

t.test('allow-partial is refused on-policy', async t =>
  t.rejects(steps(stream(group('a', 0, 2, ofRun(0))), { allowPartial: true }), {
    name: 'UsageError',
    message: /--allow-partial is for files/,
  }),
)

t.test('on-policy rollouts must be of version max(0, step − lag)', async t => {
  const of = (...versions: number[]) => versions.flatMap((v, step) => [...group(`g${step}`, 0, 1, ofRun(v)), barrier(step, 1)])
  t.same((await steps(stream(of(0, 1, 2)))).length, 3)
  t.same((await steps(stream(of(0, 0, 1)), { lag: 1 })).length, 3)
  await t.rejects(steps(stream(of(0, 0)), {}), { code: 'E_STALE', message: /policy version 0 in step 1, which takes version 1 \(lag 0\)/ })
  t.same((await steps(stream(group('a', 0, 1), barrier(0, 1), group('b', 0, 1), barrier(1, 1)))).length, 2, 'others are not asked')
})

const contradictions: [what: string, items: Item[], over: Partial<CollectPlan>, message: RegExp][] = [
  ['more groups than the barrier says', [...a(), ...b(), barrier(0, 1)], {}, /says 1 groups, and 2 came/],
  ['a place outside the step', [...group('a', 5, 2), barrier(0, 2)], {}, /group index 5 in a step of 2 groups/],
  ['a place twice', [...group('a', 0, 2), ...group('b', 0, 2), barrier(0, 2)], {}, /two groups with index 0 in step 0/],
  [
    'groups of different size',
    [...group('a', 0, 2), ...group('b', 1, 3), barrier(0, 2)],
    {},
    /a group of 3 rollouts in a step of groups of 2/,
  ],
  [
    'another group size than the option says',
    [...a(), barrier(0, 1)],
    { samplesStated: 8 },
    /a group of 2 rollouts, and --samples-per-prompt says 8/,
  ],
  ['a lost step', [barrier(0, 1), barrier(2, 1)], {}, /the barrier of step 2 where that of step 1 was due/],
  ['a replayed step with rollouts', [...a(), barrier(0, 1, { replayed: true })], {}, /said to be replayed, and rollouts came/],
  ['a replayed step out of place', [barrier(3, 1, { replayed: true })], {}, /the barrier of step 3 where that of step 0 was due/],
]
for (const [what, items, over, message] of contradictions)
  t.test(`refuses ${what}`, async t => t.rejects(steps(stream(items), over), { name: 'RecordFault', message }))

t.test('files that were joined, and one cut by tail, may count as they do', async t => {
  t.same((await steps(stream(a(), barrier(0, 1), b(), barrier(0, 2)))).length, 2)
  t.same((await steps(stream(a(), barrier(7, 1), b(), barrier(8, 2)))).length, 2)
})

t.test('an error names the line', async t => {
  const wrong = item(madeRollout({ group: { id: 'x', size: 3, index: 0 } }))
  await t.rejects(steps(stream([wrong]), { samplesStated: 2 }), { name: 'RecordFault', origin: wrong.origin })
})
