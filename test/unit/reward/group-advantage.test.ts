import t, { type Test } from 'tap'
import { type AdvantageOptions, defaultAdvantage, groupAdvantages, standardDeviation, zeroVariance } from '#cg/reward/group-advantage.js'

const plain: AdvantageOptions = { ...defaultAdvantage, eps: 0 }

const cases: [name: string, rewards: (number | null)[], options: AdvantageOptions, advantages: number[]][] = [
  // mean ½, deviations ±½, std over n − 1 = √(½)
  ['two rewards', [1, 0], plain, [Math.SQRT1_2, -Math.SQRT1_2]],
  ['two rewards, std over n', [1, 0], { ...plain, ddof: 0 }, [1, -1]],
  ['eps in the denominator', [1, 0], { ...plain, ddof: 0, eps: 0.5 }, [0.5, -0.5]],
  ['no division', [1, 0, 0.5], { ...plain, std: 'none' }, [0.5, -0.5, 0]],
  ['the mean of the others', [1, 0, 0.5], { ...plain, std: 'none', baseline: 'loo' }, [0.75, -0.75, 0]],
  ['the deviation of the batch', [1, 0], { ...plain, std: 'batch', batchStd: 0.25 }, [2, -2]],
  ['one alone', [0.7], plain, [0]],
  ['all equal', [0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.15], plain, [0, 0, 0, 0, 0, 0, 0, 0]],
  ['nobody', [], plain, []],
  ['an unscored one is outside mean and std', [1, null, 0], { ...plain, ddof: 0 }, [1, 0, -1]],
  ['one scored among unscored', [1, null, null], plain, [0, 0, 0]],
  ['equal beside an unscored one', [1, null, 1], plain, [0, 0, 0]],
]

for (const [name, rewards, options, advantages] of cases)
  t.test(name, async t => {
    const actual = groupAdvantages(rewards, options)
    t.equal(actual.length, advantages.length)
    actual.forEach((a, n) => {
      t.ok(Math.abs(a - advantages[n]!) < 1e-15, `${a} is ${advantages[n]}`)
    })
  })

const rewards = [0.2, 0.9, 0.4, 0.4, 1, 0]
const every: AdvantageOptions[] = [
  defaultAdvantage,
  { ...defaultAdvantage, ddof: 0 },
  { ...defaultAdvantage, std: 'none' },
  { ...defaultAdvantage, std: 'none', baseline: 'loo' },
  { ...defaultAdvantage, std: 'batch', batchStd: 0.3 },
]

for (const options of every)
  t.test(`invariants of ${JSON.stringify(options)}`, async t => {
    const a = groupAdvantages(rewards, options)
    t.ok(Math.abs(a.reduce((x, y) => x + y, 0)) < 1e-12, 'they sum to 0')
    near(
      t,
      groupAdvantages(
        rewards.map(r => r + 3),
        options,
      ),
      a,
      'a constant shift changes nothing',
    )
    near(t, groupAdvantages(rewards.toReversed(), options), a.toReversed(), 'they move with the rewards')
    const mean = rewards.reduce((x, y) => x + y, 0) / rewards.length
    t.same(
      a.map(Math.sign),
      rewards.map(r => Math.sign(r - mean)),
      'the sign is that of reward − mean',
    )
  })

t.test('without eps the scale of the rewards does not matter', async t =>
  near(
    t,
    groupAdvantages(
      rewards.map(r => r * 10),
      plain,
    ),
    groupAdvantages(rewards, plain),
    'ten times',
  ),
)

t.test('equal is tested as max = min: 8 × 0.15 has a rounded deviation above 0', async t => {
  const eight = Array(8).fill(0.15)
  t.ok(zeroVariance(eight))
  t.notOk(zeroVariance([...eight, 0.15000001]))
  t.ok(zeroVariance([null, null]))
})

t.test('std batch without the deviation of the batch is a mistake of the caller', async t =>
  t.throws(() => groupAdvantages([1, 0], { ...plain, std: 'batch' }), /needs batchStd/),
)

t.test('standard deviation', async t => {
  t.equal(standardDeviation([1, 3], 0), 1)
  t.equal(standardDeviation([1, 3], 1), Math.SQRT2)
  t.equal(standardDeviation([5], 1), 0)
})

function near(t: Test, actual: number[], expected: number[], name: string) {
  t.ok(actual.length === expected.length && actual.every((a, n) => Math.abs(a - expected[n]!) < 1e-9), name)
}
