import t from 'tap'
import { lineWriter } from '#cg/record/write.js'

const write = lineWriter()

const cases: [name: string, record: object, line: string][] = [
  ['a record', { kind: 'end', ok: true, n: [1, 2.5, null], o: {} }, '{"kind":"end","ok":true,"n":[1,2.5,null],"o":{}}\n'],
  ['fields that are undefined', { a: undefined, b: 1 }, '{"b":1}\n'],
  ['line separators and lone surrogates', { a: '\u2028\ud800' }, '{"a":"\u2028\\ud800"}\n'],
  [
    'BigInts, among strings that look like them',
    { a: 9007199254740993n, b: [-18446744073709551615n], c: '9007199254740993' },
    '{"a":9007199254740993,"b":[-18446744073709551615],"c":"9007199254740993"}\n',
  ],
  ['the same object twice is no cycle', (() => ((x: object) => ({ a: x, b: x }))({ y: 1 }))(), '{"a":{"y":1},"b":{"y":1}}\n'],
]
for (const [name, record, line] of cases) t.test(name, async t => t.equal(write(record), line))

t.test('a record with BigInts is left as it was', async t => {
  const record = { a: { b: 1n } }
  write(record)
  t.same(record, { a: { b: 1n } })
})

t.test('numbers that JSON cannot say are named', async t => {
  t.throws(() => write({ step: { loss: [0, Number.NaN] } }), {
    code: 'E_NUMBER',
    message: 'step.loss.1 is NaN: records hold finite numbers only',
  })
  t.throws(() => write({ a: Number.POSITIVE_INFINITY }), { code: 'E_NUMBER' })
  t.throws(() => write({ a: Float32Array.of(1) }), TypeError)
})

t.test('depth beyond the stack is a fault, and the next record can be written', async t => {
  const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)
  t.throws(() => write({ deep }), { code: 'E_DEPTH' })
  t.equal(write({ a: 1 }), '{"a":1}\n')
})
