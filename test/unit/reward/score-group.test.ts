import t from 'tap'
import { defaultAdvantage } from '#cg/reward/group-advantage.js'
import { type RewardOptions, rolloutReward, scoreGroup } from '#cg/reward/score-group.js'
import { defaultScore } from '#cg/score/score-rollout.js'
import { rollout, target } from '../score/example-rollout.js'

const v3: RewardOptions = { scheme: 'codegrep-v3', score: defaultScore, advantage: { ...defaultAdvantage, eps: 0, ddof: 0 } }
const gold = target('a.py', 'a.py:1-4')

t.test('the scale multiplies after the group is normalised', async t => {
  // rewards 1 and 0: normalised to 1 and −1; c̄ 1 and 4: √¼ and 1
  const { fields, zeroVariance } = scoreGroup([rollout({ calls: [2, 0] }), rollout({ calls: [8, 0], files: ['b.py'] })], gold, v3)
  t.same(
    fields.map(f => [f.reward, f.advantage]),
    [
      [1, 0.5],
      [0, -1],
    ],
  )
  t.notOk(zeroVariance)
})

t.test('the same weight for each turn', async t => {
  const { fields } = scoreGroup([rollout({ calls: [2, 0] }), rollout({ calls: [4, 8, 4, 0], files: [] })], gold, v3)
  t.same(fields[0]!.weights, [Math.exp(0.75), Math.exp(0.75)])
  t.same(fields[1]!.weights, Array(4).fill(Math.exp(-1.5))) // c̄ = 16 / 4: not scaled
})

t.test('a rollout that failed is outside mean and deviation', async t => {
  const failed = rollout({ stop: 'fault', calls: [], files: [] })
  const { fields } = scoreGroup([rollout(), failed, rollout({ files: ['b.py'] })], gold, v3)
  t.same(fields[1], { advantage: 0 })
  t.same(
    [fields[0]!.advantage, fields[2]!.advantage],
    scoreGroup([rollout(), rollout({ files: ['b.py'] })], gold, v3).fields.map(f => f.advantage),
  )
})

t.test('no answer is a prediction, of nothing', async t => t.equal(rolloutReward(rollout({ stop: 'turns', files: ['a.py'] }), gold, v3), 0))

t.test('a group of equal rewards', async t => {
  const { fields, zeroVariance } = scoreGroup([rollout(), rollout({ calls: [8, 0] })], gold, v3)
  t.ok(zeroVariance)
  t.same(
    fields.map(f => [f.reward, f.advantage, f.weights]),
    [
      [1, 0, [1, 1]],
      [1, 0, [1, 1]],
    ],
  )
})

t.test('the schemes with ranges', async t => {
  const found = rollout({ calls: [4, 0], ranges: ['a.py:3-4'] })
  const reward = (options: Partial<RewardOptions>) => rolloutReward(found, gold, { ...v3, ...options })
  t.equal(reward({ scheme: 'codegrep-v2' }), 1)
  t.equal(
    rolloutReward(rollout({ calls: [4, 0], ranges: ['a.py:1-20'] }), gold, {
      ...v3,
      scheme: 'codegrep-v2',
      score: { ...defaultScore, rangeMatch: 'jaccard' },
    }),
    0.5,
  )
  t.equal(reward({ scheme: 'codegrep-v1' }), 1)
  t.equal(reward({ scheme: 'codegrep-v1', score: { ...defaultScore, countTurns: 'exploring' } }), 1)
})

t.test('calls beside the answer open no gate', async t => {
  const junk = rollout({ calls: [8] })
  t.equal(rolloutReward(junk, gold, v3), 0)
  t.equal(rolloutReward(junk, gold, { ...v3, score: { ...defaultScore, countTurns: 'paper' } }), 1)
})
