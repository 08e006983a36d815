import t from 'tap'
import type { Known } from '#cg/record/item.js'
import { stepPlans } from '#cg/rollout/schedule.js'
import { task } from './a-policy.js'

const items = (...ids: string[]): Known<'instance'>[] =>
  ids.map((id, i) => ({
    kind: 'instance',
    record: { ...task, instance_id: id, problem_statement: id },
    origin: { file: '-', line: i + 1 },
  }))
const plans = (list: Known<'instance'>[], over: object = {}) => [
  ...stepPlans(list, { seed: '0', promptsPerStep: 2, steps: null, dropLast: false, ...over }),
]
const shape = (list: Known<'instance'>[], over: object = {}) =>
  plans(list, over).map(plan => plan.prompts.map(p => `${p.item.record.instance_id}${p.pass}`).join(' '))

t.test('one pass without a number of steps; the last step is as small as it comes out', async t => {
  const steps = shape(items('a', 'b', 'c', 'd', 'e'))
  t.same(
    steps.map(step => step.split(' ').length),
    [2, 2, 1],
  )
  t.same(steps.join(' ').split(' ').sort(), ['a0', 'b0', 'c0', 'd0', 'e0'])
  t.equal(shape(items('a', 'b', 'c', 'd', 'e'), { dropLast: true }).length, 2)
})

t.test('steps run across passes, each instance once a pass', async t => {
  const steps = shape(items('a', 'b', 'c'), { steps: 6 })
  t.equal(steps.length, 6)
  t.same(steps.join(' ').split(' ').sort(), ['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'b2', 'b3', 'c0', 'c1', 'c2', 'c3'])
  for (const [round, pass] of [0, 1, 2, 3].entries())
    t.same(
      steps
        .join(' ')
        .split(' ')
        .slice(round * 3, round * 3 + 3)
        .map(p => p.slice(1)),
      [pass, pass, pass].map(String),
    )
})

t.test('fewer instances than a step has prompts', async t => t.same(shape(items('a'), { promptsPerStep: 3, steps: 1 }), ['a0 a1 a2']))

t.test('a content that comes twice is two passes', async t => {
  const twice = [...items('a'), ...items('a')]
  t.same(shape(twice, { steps: 2 }), ['a0 a1', 'a2 a3'])
})

t.test('the order is of seed, pass and content, not of the input', async t => {
  const list = items('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
  t.same(shape(list.toReversed(), { steps: 8 }), shape(list, { steps: 8 }))
  t.not(shape(list, { seed: '1' }).join(), shape(list).join())
  const [first, second] = [shape(list, { steps: 8 }).slice(0, 4), shape(list, { steps: 8 }).slice(4)]
  t.not(first.join().replace(/\d/g, ''), second.join().replace(/\d/g, ''), 'passes differ')
})

t.test('the digest names the prompts of a step', async t => {
  const digests = plans(items('a', 'b', 'c'), { steps: 3 }).map(p => p.digest)
  t.equal(new Set(digests).size, 3)
  t.match(digests[0], /^[0-9a-f]{64}$/)
})

t.test('nothing in, nothing out', async t => t.same(shape([], { steps: 3 }), []))
