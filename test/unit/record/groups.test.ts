import t from 'tap'
import { groups, mapGroups } from '#cg/record/groups.js'
import type { Item, Known, Output } from '#cg/record/item.js'
import { isItem, textLine } from '#cg/record/item.js'
import type { Rollout } from '#cg/record/schema.js'

const origin = { file: '-', line: 1 }

/** `a0/3` is member 0 of group a, size 3; `|` is a barrier; any other word a foreign line. */
function parse(words: string): Item[] {
  return words.split(' ').map((word, n): Item => {
    const member = /^([a-z])(\d)\/(\d)$/.exec(word)
    if (member) {
      const record = { kind: 'rollout', group: { id: member[1], size: Number(member[3]), index: 0 }, sample: Number(member[2]) }
      return { kind: 'rollout', record: record as unknown as Rollout, origin: { file: '-', line: n + 1 } }
    }
    if (word === '|')
      return { kind: 'barrier', record: { kind: 'barrier', v: 1, step: 0, version: 0, groups: 1, digest: '0'.repeat(64) }, origin }
    return textLine(word)
  })
}

async function* from(items: Item[]) {
  yield* items
}

const name = (item: Known<'rollout'>) => `${item.record.group.id}${item.record.sample}`
const word = (item: Item) =>
  item.kind === 'rollout' ? name(item) : item.kind === 'barrier' ? '|' : Buffer.from((item as { bytes: Uint8Array }).bytes).toString()

async function gathered(words: string) {
  const out: string[] = []
  const warnings: string[] = []
  for await (const found of groups(from(parse(words)), message => warnings.push(message)))
    out.push(found.kind === 'group' ? `[${found.rollouts.map(name).join(' ')}]${found.complete ? '' : '?'}` : word(found as Item))
  return { out: out.join(' '), warnings }
}

const cases: [name: string, input: string, output: string, warnings?: number][] = [
  ['groups of their size', 'a0/2 a1/2 b0/2 b1/2', '[a0 a1] [b0 b1]'],
  ['a barrier closes a group', 'a0/3 a1/3 | b0/1', '[a0 a1]? | [b0]'],
  ['the end closes a group', 'a0/3', '[a0]?'],
  ['another group closes a group, and that is said', 'a0/3 a1/3 b0/1', '[a0 a1]? [b0]', 1],
  ['lines between groups stay between them', 'x a0/1 y b0/1 z', 'x [a0] y [b0] z'],
  ['lines inside a group follow it', 'a0/2 x a1/2 y', '[a0 a1] x y'],
]
for (const [title, input, output, warnings = 0] of cases)
  t.test(title, async t => {
    const result = await gathered(input)
    t.equal(result.out, output)
    t.equal(result.warnings.length, warnings)
  })

t.test('a group is given out with its last member, before anything more is read', async t => {
  let read = 0
  async function* counted() {
    for (const item of parse('a0/2 a1/2 b0/2')) {
      read++
      yield item
    }
  }
  const first = await groups(counted()).next()
  t.match(first.value, { kind: 'group', complete: true })
  t.equal(read, 2)
})

for (const [title, input, message] of [
  ['a group that comes back', 'a0/1 b0/1 a1/1', /group a .* comes back/],
  ['a group that comes back after it was cut short', 'a0/2 b0/1 a1/2', /group a .* comes back/],
  ['a member too many', 'a0/1 a1/1', /group a has more than 1 rollouts/],
  ['members that disagree', 'a0/2 a1/3', /group a is of 2 rollouts in one row and of 3 in another/],
] as const)
  t.test(title, async t => t.rejects(gathered(input), { code: 'E_GROUP', message }))

t.test('mapGroups keeps every line in its place', async t => {
  const out: string[] = []
  const double = (output: Output) => (isItem(output) ? word(output) : `${(output as Rollout).group.id}${(output as Rollout).sample}`)
  for await (const output of mapGroups(
    from(parse('x a0/3 y a1/3 | b0/1 z')),
    () => {},
    group => group.rollouts.map(({ record }) => ({ ...record, sample: record.sample + 5 })),
  ))
    out.push(double(output))
  t.equal(out.join(' '), 'x a5 y a6 | b5 z')
})

t.test('mapGroups refuses a result of another length', async t => {
  const outputs = mapGroups(
    from(parse('a0/1')),
    () => {},
    () => [],
  )
  await t.rejects(outputs.next(), RangeError)
})
