import { join } from 'node:path'
import t from 'tap'
import { RecordFault } from '#cg/record/fault.js'
import { lineWriter } from '#cg/record/write.js'
import { type Sampler, sampleGroup } from '#cg/rollout/sample-group.js'
import { instanceDigest, rolloutId } from '#cg/rollout/settings.js'
import { noCache } from '#cg/store/cache.js'
import { openCache } from '#cg/store/sqlite-cache.js'
import { createLimit } from '#cg/tools/limit.js'
import { treeOf } from '../tools/a-tree.js'
import { answer, block, chat, saying, settings, task } from './a-policy.js'

const { tree, bare, commits } = await treeOf(t, { 'lib/parse.py': 'def parse(line):\n    pass\n' })
const instance = { ...task, worktree: { commit: commits[0]!, tree: tree.id, bare }, patch: 'diff', issue_kind: 'error' }

function sampler(given: Partial<Sampler>): Sampler {
  return {
    policy: saying([block('grep', { pattern: 'def parse' }), answer('lib/parse.py')], { tokens: true }),
    chat,
    settings: settings(),
    samples: 3,
    limit: createLimit(4),
    cache: noCache,
    table: 'results',
    openTree: async () => tree,
    ...given,
  }
}
const place = { pass: 0, index: 5 }
const bytes = (record: object) => String(lineWriter()(record as never))

t.test('a group: members in order, adjacent ids, the instance’s own fields', async t => {
  const { rollouts, faults, cached } = await sampleGroup(sampler({}), instance, place)
  t.same(
    rollouts.map(r => [r.sample, r.group]),
    [0, 1, 2].map(sample => [sample, { id: rollouts[0]!.group.id, size: 3, index: 5 }]),
  )
  t.equal(new Set(rollouts.map(r => r.id)).size, 3)
  t.equal(rollouts[0]!.issue_kind, 'error')
  t.notOk('worktree' in rollouts[0]! || 'patch' in rollouts[0]!)
  t.same(faults, [])
  t.equal(cached, false)
})

t.test('ids are of contents and deciding options', async t => {
  const id = (over: object, rules = settings(), draw = { pass: 0, sample: 0 }, policy: object = {}) =>
    rolloutId(
      instanceDigest({ ...task, ...over }),
      { kind: 'native', name: 'm', model_sha256: 'a'.repeat(64), ...policy },
      false,
      rules,
      draw,
    )
  const own = id({})
  t.equal(id({ worktree: { commit: 'x', tree: 'y' }, target: undefined }), own, 'where the files lie is not among them')
  t.equal(id({}, settings(), undefined, { name: 'elsewhere' }), own, 'nor a model’s name')
  const others = [
    id({ problem_statement: 'other' }),
    id({ base_commit: '1'.repeat(40) }),
    id({}, settings(), { pass: 1, sample: 0 }),
    id({}, settings(), { pass: 0, sample: 1 }),
    id({}, { ...settings(), seed: '1' }),
    id({}, settings({ maxTurns: 3 })),
    id({}, settings(), undefined, { adapter_sha256: 'b'.repeat(64) }),
    id({}, settings(), undefined, { run_id: 'r', version: 3 }),
  ]
  t.equal(new Set([own, ...others]).size, 9)
})

t.test('a hit has the bytes of a miss, and runs nothing', async t => {
  const cache = openCache({ file: join(t.testdir(), 'cache.db') })
  t.teardown(() => cache.close())
  const miss = await sampleGroup(sampler({ cache }), instance, place)
  cache.flush()
  const policy = saying([new Error('asked again')], { tokens: true })
  const hit = await sampleGroup(sampler({ cache, policy, openTree: async () => Promise.reject(new Error('opened')) }), instance, place)
  t.equal(hit.cached, true)
  t.same(hit.rollouts.map(bytes), miss.rollouts.map(bytes))
  const live = await sampleGroup(sampler({ cache, policy }), { ...instance, note: 'new' }, place)
  t.equal(live.rollouts[0]!.note, 'new', 'foreign fields stay live')
  const other = await sampleGroup(sampler({ cache, policy: { ...sampler({}).policy, logprobKind: 'other-1' } }), instance, place)
  t.equal(other.cached, false, 'log-probs of another kind are other results')
})

t.test('a member that fails is still there', async t => {
  let calls = 0
  const policy = saying([
    request => {
      calls++
      if (request.sample === 1) throw new RecordFault('E_SERVER', 'status 500')
      return answer('a.py')
    },
  ])
  const cache = openCache({ file: join(t.testdir(), 'cache.db') })
  t.teardown(() => cache.close())
  const { rollouts, faults } = await sampleGroup(sampler({ policy, cache }), instance, place)
  t.same(
    rollouts.map(r => r.stop),
    ['answer', 'fault', 'answer'],
  )
  t.match(rollouts[1], { turns: [], answer: { files: [], parse: 'none' }, fault: { code: 'E_SERVER', message: 'status 500' } })
  t.notOk('tokens' in rollouts[1]!)
  t.equal(faults.length, 1)
  await sampleGroup(sampler({ policy, cache }), instance, place)
  t.equal(calls, 4, 'only the failed one is tried again')
})

t.test('no worktree', async t =>
  t.rejects(sampleGroup(sampler({}), task, place), { code: 'E_NO_WORKTREE', message: /put cg-worktree before this command/ }),
)

t.test('what is no fault of a record is not hidden', async t =>
  t.rejects(sampleGroup(sampler({ policy: saying([new TypeError('bug')]) }), instance, place), TypeError),
)

t.test('many at once, as many as allowed', async t => {
  let running = 0
  let most = 0
  const policy = saying([
    async () => {
      most = Math.max(most, ++running)
      await new Promise(resolve => setTimeout(resolve, 5))
      running--
      return answer()
    },
  ])
  const { rollouts } = await sampleGroup(sampler({ policy, samples: 12, limit: createLimit(3) }), instance, place)
  t.equal(rollouts.length, 12)
  t.equal(most, 3)
})

t.test('an abort stops the group', async t => {
  const stop = new AbortController()
  const policy = saying([
    () => {
      stop.abort(new Error('stopped'))
      return answer()
    },
  ])
  await t.rejects(sampleGroup(sampler({ policy, samples: 4, limit: createLimit(1) }), instance, place, stop.signal), { message: 'stopped' })
})
