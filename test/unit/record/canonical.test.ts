import t from 'tap'
import { canonical, contentId, sha256 } from '#cg/record/canonical.js'
import { shortestFloat32 } from '#cg/record/round.js'

const cases: [name: string, value: unknown, text: string][] = [
  // RFC 8785, section 3.2.2
  [
    'numbers',
    [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001, -0],
    '[333333333.3333333,1e+30,4.5,0.002,1e-27,0]',
  ],
  ['literals', [null, true, false], '[null,true,false]'],
  ['strings', '€$\u000f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'],
  // RFC 8785, section 3.2.3: sorted by UTF-16 code units, so the emoji (a surrogate pair) comes before U+FB33
  [
    'keys',
    { '€': 1, '\r': 2, '\ufb33': 3, '1': 4, '😀': 5, '\u0080': 6, ö: 7 },
    '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
  ],
  ['undefined members are absent', { a: undefined, b: 1 }, '{"b":1}'],
  ['typed arrays are arrays', { ids: Int32Array.of(1, -2) }, '{"ids":[1,-2]}'],
  ['a BigInt keeps its digits', 18446744073709551615n, '18446744073709551615'],
  ['nesting', { b: [{ d: 1, c: 2 }], a: {} }, '{"a":{},"b":[{"c":2,"d":1}]}'],
]
for (const [name, value, text] of cases) t.test(name, async t => t.equal(canonical(value), text))

for (const value of [Number.NaN, Number.POSITIVE_INFINITY, [undefined], () => 1, { a: Symbol.iterator }])
  t.test('what JSON cannot say is refused', async t => t.throws(() => canonical(value), TypeError))

t.test('sha256', async t => t.equal(sha256('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'))

t.test('an id depends on kind, parents and options, not on the order of keys', async t => {
  const id = contentId('rollout', ['p'], { seed: '1', temperature: 1 })
  t.equal(id, contentId('rollout', ['p'], { temperature: 1, seed: '1' }))
  t.equal(id, sha256('{"kind":"rollout","options":{"seed":"1","temperature":1},"parents":["p"]}'))
  for (const other of [
    contentId('score', ['p'], { seed: '1', temperature: 1 }),
    contentId('rollout', ['q'], { seed: '1', temperature: 1 }),
    contentId('rollout', ['p'], {}),
  ])
    t.not(id, other)
})

const floats: [value: number, shortest: number][] = [
  [Math.fround(0.1), 0.1],
  [Math.fround(-2.5182818), -2.5182817],
  [1 / 3, 0.33333334],
  [16777216, 16777216],
  [1.17549435e-38, 1.1754944e-38],
  [3.4028235e38, 3.4028235e38],
  [1e-45, 1e-45],
  [0, 0],
]
for (const [value, shortest] of floats) t.test(`float32 ${shortest}`, async t => t.equal(shortestFloat32(value), shortest))

t.test('every rounded float32 reads back to itself', async t => {
  const bits = new Uint32Array(1)
  const view = new Float32Array(bits.buffer)
  for (let n = 0; n < 20_000; n++) {
    bits[0] = (Math.imul(n + 1, 0x9e3779b1) ^ (n << 7)) >>> 0
    const x = view[0]!
    if (Number.isFinite(x) && Math.fround(shortestFloat32(x)) !== x) t.fail(`${x} became ${shortestFloat32(x)}`)
  }
  t.pass()
})
