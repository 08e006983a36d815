import t from 'tap'
import { unquote, unquoteName } from '#cg/gold/quoting.js'

const cases: [quoted: string, name: string | undefined][] = [
  ['a.py', 'a.py'],
  ['"caf\\303\\251.py"', 'café.py'],
  ['"tab\\there"', 'tab\there'],
  ['"q\\"b\\\\"', 'q"b\\'],
  ['"\\001\\a\\b\\v\\f\\r\\033\\177"', '\x01\x07\b\v\f\r\x1b\x7f'],
  ['"ü\\n"', 'ü\n'], // core.quotePath off: only the line feed is quoted
  ['"\\377"', '\ufffd'], // a byte that is no UTF-8
  ['"\\357\\273\\277x"', '\ufeffx'], // a byte order mark is a part of the name
  ['"open', undefined],
  ['"\\x41"', undefined],
  ['"\\78"', undefined],
  ['"\\', undefined],
]

for (const [quoted, name] of cases) t.test(JSON.stringify(quoted), async t => t.equal(unquoteName(quoted), name))

t.test('what stands behind the quote', async t => t.same(unquote('"a b" "c"'), { name: 'a b', rest: ' "c"' }))
