import t from 'tap'
import { nameBytes, shownName } from '#cg/repo/shown-name.js'

const cases: [name: string, bytes: Buffer, shown: string][] = [
  ['plain', Buffer.from('src/a.py'), 'src/a.py'],
  ['UTF-8 stays readable', Buffer.from('naïve.py'), 'naïve.py'],
  ['a space and a backslash stay', Buffer.from('a b\\c'), 'a b\\c'],
  ['newline', Buffer.from('a\nb'), '"a\\nb"'],
  ['tab and bell', Buffer.from('a\t\u0007'), '"a\\t\\a"'],
  ['escape', Buffer.from('\u001b[1m'), '"\\033[1m"'],
  ['not UTF-8', Buffer.from([0x61, 0xff]), '"a\\377"'],
  ['not UTF-8 beside UTF-8', Buffer.from([0xc3, 0xaf, 0xff]), '"\\303\\257\\377"'],
  ['the replacement character itself is UTF-8', Buffer.from('\ufffd'), '\ufffd'],
  ['a leading quote would look like quoting', Buffer.from('"a"'), '"\\"a\\""'],
  ['a quote inside would not', Buffer.from('a"b'), 'a"b'],
]
for (const [name, bytes, shown] of cases)
  t.test(name, async t => {
    t.equal(shownName(bytes), shown)
    t.strictSame(nameBytes(shown), bytes)
  })

t.test('broken quotes stand for themselves', async t => {
  for (const text of ['"', '"a', '"a"b"', '"\\q"', '"\\9"']) t.equal(nameBytes(text).toString(), text)
})

t.test('any bytes come back, and no two names look the same', async t => {
  let state = 1
  const random = (n: number) => {
    state = (state * 48271) % 2147483647
    return state % n
  }
  const seen = new Map<string, string>()
  const wrong: string[] = []
  for (let i = 0; i < 3000; i++) {
    const pick = [34, 92, 10, 97, 110, 48, 55, 0xc3, 0xaf, 0xff]
    const bytes = Buffer.from(Array.from({ length: 1 + random(6) }, () => pick[random(pick.length)]!))
    const shown = shownName(bytes)
    const other = seen.get(shown) ?? bytes.toString('hex')
    if (!nameBytes(shown).equals(bytes) || other !== bytes.toString('hex')) wrong.push(shown)
    seen.set(shown, other)
  }
  t.strictSame(wrong, [])
  t.ok(seen.size > 1000)
})
