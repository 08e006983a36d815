import t from 'tap'
import { withCaret } from '#cg/cli/messages.js'

const cases: [name: string, text: string, at: number, shown: string][] = [
  ['a short line', '{"a":x}', 5, '  {"a":x}\n       ^\n'],
  ['the end of a line', '{"a":1', 6, '  {"a":1\n        ^\n'],
  ['control characters', '{"a":\t"\u0007"}', 7, '  {"a": " "}\n         ^\n'],
  ['characters of two units count once', '"😀😀":x', 7, '  "😀😀":x\n       ^\n'],
]
for (const [name, text, at, shown] of cases) t.test(name, async t => t.equal(withCaret(text, at), shown))

t.test('a long line is cut around the place', async t => {
  const [line, caret] = withCaret(`${'a'.repeat(500)}!${'b'.repeat(500)}`, 500).split('\n')
  t.ok(line!.length <= 78)
  t.equal(line![caret!.length - 1], '!')
  t.match(line, /^ {2}…a+!b+…$/)
})
t.test('a long line is cut at its end', async t => {
  const [line, caret] = withCaret(`!${'b'.repeat(500)}`, 0).split('\n')
  t.match(line, /^ {2}!b+…$/)
  t.equal(caret, '  ^')
})
