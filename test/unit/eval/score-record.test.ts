import t from 'tap'
import { scoreFigures, scoreRecord } from '#cg/eval/score-record.js'
import type { Rollout } from '#cg/record/schema.js'
import { score as scoreSchema } from '#cg/record/schema.js'
import { rollout, target } from '../score/example-rollout.js'

const gold = target('a.py b.py')
const record = (r: Rollout, options = {}) => scoreRecord(r, gold, scoreFigures(r, gold), options)

t.test('figures and what was spent', async t => {
  const found = record(
    rollout({ calls: [10, 2, 0], more: { issue_kind: 'error', timing: { seconds: 1.5, tool_seconds: 1 }, reward: 0.8 } }),
  )
  t.match(found, {
    kind: 'score',
    rollout: 'i1/g/0',
    instance_id: 'i1',
    name: 'lexical',
    gold_rules: 'codegrep/1',
    precision: 1,
    recall: 0.5,
    answered: true,
    fault: false,
    turns: 3,
    calls: 12,
    calls_not_run: 2,
    calls_per_turn: 4,
    tokens: 30,
    reward: 0.8,
    issue_kind: 'error',
    timing: { seconds: 1.5 },
  })
  t.ok(Math.abs(found.f05 - 5 / 6) < 1e-15)
  scoreSchema.parse(found)
})

t.test('a rollout that failed scores 0, also against an empty target', async t => {
  const failed = rollout({ stop: 'fault', files: [], calls: [] })
  t.match(scoreFigures(failed, target('')), { f05: 0, precision: 0, recall: 0 })
  t.match(record(failed), { fault: true, answered: false })
  t.equal(scoreFigures(rollout({ stop: 'turns', files: [] }), target('')).f05, 1, 'an empty prediction of nothing is right')
})

t.test('names: the policy, its adapter, or what it is called', async t => {
  const policy = { kind: 'native' as const, name: 'tiny', adapter_sha256: 'abcdef12'.repeat(8) }
  t.equal(record(rollout({ more: { policy } })).name, 'tiny@abcdef12')
  t.equal(record(rollout({ more: { policy } }), { name: 'grpo' }).name, 'grpo')
})

t.test('more fields of the instance can be kept', async t => {
  const r = rollout({ more: { difficulty: 'hard', misleads: true } })
  t.match(record(r, { fields: ['difficulty', 'version'] }), { difficulty: 'hard', misleads: true })
  t.notOk('version' in record(r, { fields: ['version'] }))
  t.notOk('difficulty' in record(r))
})

t.test('the id depends on the target, not on names', async t => {
  const r = rollout()
  t.equal(record(r).id, record(r, { name: 'other' }).id)
  t.not(record(r).id, scoreRecord(r, target('b.py'), scoreFigures(r, gold)).id)
})
