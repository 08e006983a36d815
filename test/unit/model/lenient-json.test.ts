import t from 'tap'
import { readLenientJson } from '#cg/model/lenient-json.js'

const cases: [text: string, value: unknown, repaired: boolean][] = [
  ['{"a": [1, -2.5e3, true, null]}', { a: [1, -2500, true, null] }, false],
  ["{'a': 'it\\'s', \"b\": 'say \"x\"'}", { a: "it's", b: 'say "x"' }, true],
  ['[1, 2, ]', [1, 2], true],
  ["{'a': True, 'b': False, 'c': None}", { a: true, b: false, c: null }, true],
  ['```\n[1]\n```', [1], true],
  ['```json\n{"a": 1,}\n```', { a: 1 }, true],
  ["'\\u0041\\n\\x'", 'A\nx', true],
  ['["a\nb"]', ['a\nb'], true],
  ['{}', {}, false],
]
for (const [text, value, repaired] of cases) t.test(JSON.stringify(text), async t => t.same(readLenientJson(text), { value, repaired }))

for (const text of ['', 'x', '{a: 1}', '[1 2]', '{"a" 1}', '{"a": 1', "['a", '[1] [2]', '01', '{"a": --1}', '['.repeat(5000)])
  t.test(`not ${JSON.stringify(text.slice(0, 20))}`, async t => t.equal(readLenientJson(text), undefined))

t.test('a key __proto__ is a key', async t => {
  const { value } = readLenientJson("{'__proto__': {'polluted': 1},}")!
  t.equal(({} as { polluted?: number }).polluted, undefined)
  t.ok(typeof value === 'object')
})

t.test('a fence with a million blanks takes no longer than it must', async t => {
  t.equal(readLenientJson(`\`\`\`json${' \n'.repeat(5e5)}x`), undefined)
  t.same(readLenientJson(`\`\`\`json${' \n'.repeat(5e5)}[1]\n\n\`\`\``), { value: [1], repaired: true })
})
