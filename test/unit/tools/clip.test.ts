import t from 'tap'
import { clipLine, codePoints } from '#cg/tools/clip.js'

t.test('code points', async t => {
  t.equal(codePoints('aé😀'), 3)
  t.equal(codePoints('\ud83d'), 1)
  t.equal(codePoints(''), 0)
})

const cases: [name: string, line: string, at: [number, number] | undefined, shown: string][] = [
  ['fits', '0123456789', undefined, '0123456789'],
  ['the beginning stays', '0123456789ABC', undefined, '012345678…'],
  ['a match near the beginning', '0123456789ABC', [2, 4], '012345678…'],
  ['a match at the end', '0123456789ABC', [11, 13], '…456789ABC'],
  ['a match in the middle', '0123456789ABCDEFGHIJ', [10, 12], '…789ABCDE…'],
  ['a match as long as the line', '0123456789ABC', [0, 13], '012345678…'],
  ['a long match keeps its beginning', '0123456789ABCDEFGHIJ', [3, 19], '…3456789A…'],
  ['an emoji is one character', '😀'.repeat(10), undefined, '😀'.repeat(10)],
  ['emojis are not cut in half', '😀'.repeat(20), [20, 22], `…${'😀'.repeat(8)}…`],
  ['carriage return', 'abc\r', undefined, 'abc'],
  ['control characters', '\u001b[1mx\u0000', undefined, '\ufffd[1mx\ufffd'],
  ['tabs stay', '\tx', undefined, '\tx'],
]
for (const [name, line, at, shown] of cases) t.test(name, async t => t.equal(clipLine(line, 10, at), shown))

t.test('wherever the match is, it is shown, in at most the width', async t => {
  const wrong: string[] = []
  for (let length = 8; length < 60; length++)
    for (let start = 0; start < length; start++) {
      const line = `${'.'.repeat(start)}X${'.'.repeat(length - start - 1)}`
      const shown = clipLine(line, 10, [start, start + 1])
      if (!shown.includes('X') || codePoints(shown) > 10) wrong.push(`${start} of ${length}: ${shown}`)
    }
  t.strictSame(wrong, [])
})

t.test('a line of millions of characters costs nothing', async t => {
  const line = `${'a'.repeat(3_000_000)}needle${'b'.repeat(3_000_000)}`
  const start = performance.now()
  t.match(clipLine(line, 300, [3_000_000, 3_000_006]), /^…a+needleb+…$/)
  t.ok(performance.now() - start < 500)
})
