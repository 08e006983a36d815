import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { RecordFault } from '#cg/record/fault.js'
import type { Item } from '#cg/record/item.js'
import { type ReadOptions, readRecords } from '#cg/record/read.js'
import type { Kind } from '#cg/record/schema.js'

const dir = mkdtempSync(join(tmpdir(), 'cg-read-'))
let files = 0
function file(bytes: string | Buffer): string {
  const path = join(dir, `${++files}.ndjson`)
  writeFileSync(path, bytes)
  return path
}

async function read(
  bytes: string | Buffer,
  options: ReadOptions = {},
  kinds: Kind[] = ['instance', 'rollout', 'barrier'],
): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of readRecords(file(bytes), kinds, options)) items.push(item)
  return items
}

const row = (n: number) => `{"instance_id":"i${n}","repo":"o/r","base_commit":"c","problem_statement":"p"}`
const ids = (items: Item[]) => items.map(item => (item.kind === 'instance' ? item.record.instance_id : item.kind))
const numbers = (items: Item[]) => items.map(item => item.origin.line)

const layouts: [name: string, bytes: string | Buffer, lines: number[]][] = [
  ['lines', `${row(1)}\n${row(2)}\n`, [1, 2]],
  ['a last line without line feed', `${row(1)}\n${row(2)}`, [1, 2]],
  ['CRLF', `${row(1)}\r\n${row(2)}\r\n`, [1, 2]],
  ['a byte order mark', `\ufeff${row(1)}\n${row(2)}\n`, [1, 2]],
  ['blank lines', `\n  \n${row(1)}\n\r\n\n${row(2)}\n\n`, [3, 6]],
  ['a JSON array', `[${row(1)},${row(2)}]`, [1, 1]],
  ['a JSON array over lines', `\n[\n  ${row(1)}\n  ,\n${row(2).replace(',', ',\n')}\n]\n`, [3, 5]],
  ['gzip', gzipSync(`${row(1)}\n${row(2)}\n`), [1, 2]],
  ['gzip of a JSON array', gzipSync(`[${row(1)},\n${row(2)}]`), [1, 2]],
  ['gzip with a byte order mark', gzipSync(`\ufeff[${row(1)},\n${row(2)}]`), [1, 2]],
]
for (const [name, bytes, expected] of layouts)
  t.test(name, async t => {
    const items = await read(bytes)
    t.same(ids(items), ['i1', 'i2'])
    t.same(numbers(items), expected)
  })

for (const [name, bytes] of [
  ['nothing', ''],
  ['only blank lines', '\n \r\n\t\n'],
  ['an empty array', ' [ ] '],
] as const)
  t.test(`${name} is no record`, async t => t.same(await read(bytes), []))

t.test('lines that come in pieces, split anywhere', async t => {
  const text = Array.from({ length: 5000 }, (_, n) => row(n).replace('"p"', JSON.stringify('ü😀'.repeat(n % 50)))).join('\n')
  t.same(
    ids(await read(text)),
    Array.from({ length: 5000 }, (_, n) => `i${n}`),
  )
  t.same(
    ids(await read(`[${text.replaceAll('\n', ',\n')}]`)),
    Array.from({ length: 5000 }, (_, n) => `i${n}`),
  )
})

t.test('kinds', async t => {
  const instance = { instance_id: 'a', repo: 'o/r', base_commit: 'c', problem_statement: 'p' }
  const kindOf = async (value: object) => (await read(JSON.stringify(value), {}, ['instance', 'trajectory']))[0]!.kind
  t.equal(await kindOf(instance), 'instance')
  t.equal(await kindOf({ ...instance, trajectory: [] }), 'trajectory', 'both: a trajectory')
  t.equal(await kindOf({ instance_id: 'a', messages: [] }), 'trajectory')
  t.equal(await kindOf({ instance_id: 'a', model_patch: '' }), 'foreign', 'a prediction')
  t.equal(await kindOf({ kind: 'weather', v: 9 }), 'foreign')
  t.equal(await kindOf({ kind: 7, ...instance }), 'foreign')
})

t.test('rows without kind get one', async t => {
  const [item] = await read(row(1))
  t.match(item, { record: { kind: 'instance', v: 1, instance_id: 'i1' } })
})

t.test('a line of another kind keeps its bytes', async t => {
  const line = '{ "kind":"weather", "n": 123456789012345678901,"x":1.50 }'
  const [item] = await read(`${line}\r\n`)
  t.equal(item!.kind === 'foreign' && Buffer.from(item!.bytes).toString(), line)
})

t.test('integers above 2^53 in fields that are not ours keep their digits; ours stay numbers', async t => {
  const [item] = await read(
    `${row(1).slice(0, -1)},"pr":9007199254740993,"meta":{"ids":[-18446744073709551615,1]},"text":"x: 9007199254740993","target":{"gold_rules":"g","files":[{"path":"a","weight":12345678901234567890,"sha":12345678901234567890}]}}`,
  )
  t.match(item, { record: { pr: 9007199254740993n, meta: { ids: [-18446744073709551615n, 1] }, text: 'x: 9007199254740993' } })
  const [target] = (item as unknown as { record: { target: { files: { weight: unknown; sha: unknown }[] } } }).record.target.files
  t.equal(target!.weight, 12345678901234567000)
  t.equal(target!.sha, 12345678901234567890n)
})

t.test('of a repeated name the last counts', async t => {
  const [item] = await read(row(1).replace('{', '{"instance_id":"first",'))
  t.match(item, { record: { instance_id: 'i1' } })
})

type Bad = [name: string, line: string, code: string, message: RegExp, at?: number]
const bad: Bad[] = [
  ['null', 'null', 'E_PARSE', /^null, not an object: write one JSON object a line$/, 0],
  ['a number', '12', 'E_PARSE', /^a number, not an object/, 0],
  ['a string', '"x"', 'E_PARSE', /^a string, not an object/, 0],
  ['no JSON', 'hello', 'E_PARSE', /^not JSON: a word without quotes: write one JSON object a line$/, 0],
  ['Python', "{'a': 1}", 'E_PARSE', /expected a name in double quotes/, 1],
  ['Python None', '{"a": None}', 'E_PARSE', /None is Python, not JSON/, 6],
  ['NaN', '{"a":NaN}', 'E_PARSE', /NaN is not a JSON number/, 5],
  ['two objects', '{"a":1}{"b":2}', 'E_PARSE', /a second object on the line/, 7],
  ['a comma too many', '{"a":1,}', 'E_PARSE', /a comma before the closing brace/, 7],
  ['a comma too many in an array', '{"a":[1,]}', 'E_PARSE', /a comma before the closing bracket/, 8],
  ['a missing comma', '{"a":1 "b":2}', 'E_PARSE', /expected ',' or '}'/, 7],
  ['a bad escape', '{"a":"\\x"}', 'E_PARSE', /an escape that JSON does not have/, 6],
  ['a control character', '{"a":"\u0001"}', 'E_PARSE', /a control character inside a string/, 6],
  ['a leading zero', '{"a":012}', 'E_PARSE', /not a JSON number/, 5],
  ['a cut line', '{"a":"xyz', 'E_CUT', /a string without its closing quote: the line is cut off/, 5],
  ['a cut line after a value', '{"a":1', 'E_CUT', /expected ',' or '}': the line is cut off/, 6],
  ['a pretty-printed file', '{', 'E_CUT', /write one object a line \('jq -c \.' does it\)/, 1],
  [
    'another version',
    '{"kind":"rollout","v":2}',
    'E_VERSION',
    /^kind rollout in version 2, and this cg knows version 1: use the cg that wrote it$/,
  ],
  ['another version of a kind that is not read', '{"kind":"score","v":"1"}', 'E_VERSION', /^kind score in version "1"/],
  [
    'a missing field',
    '{"instance_id":"a","problem_statement":"p","repo":"r"}',
    'E_RECORD',
    /not a good instance record: base_commit: missing \(string\): see cg-record\(5\)/,
  ],
  [
    'a wrong type',
    `${row(1).slice(0, -1)},"target":{"gold_rules":"x","files":[{"path":3}]}}`,
    'E_RECORD',
    /target\.files\[0\]\.path: expected string, received number/,
  ],
]
for (const [name, line, code, message, at] of bad)
  t.test(`refused: ${name}`, async t => {
    const path = file(`${row(1)}\n\n${line}\n${row(2)}\n`)
    const seen: Item[] = []
    const error = await (async () => {
      for await (const item of readRecords(path, ['instance', 'rollout'])) seen.push(item)
    })().then(
      () => undefined,
      (error: RecordFault) => error,
    )
    t.equal(seen.length, 1, 'what stands before it is given out')
    t.match(error, { code, message, origin: { file: path, line: 3 } })
    if (at !== undefined) t.same(error?.excerpt, { text: line, at })
  })

t.test('refused: broken UTF-8', async t => {
  await t.rejects(read(Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')])), {
    code: 'E_PARSE',
    message: /not UTF-8/,
    excerpt: { at: 6 },
  })
})
t.test('refused: a line that is too long', async t => {
  await t.rejects(read(`${row(1)}\n{"a":"${'x'.repeat(3000)}"}\n`, { maxLine: 2048 }), {
    code: 'E_LINE_LENGTH',
    origin: { line: 2 },
    message: /raise --max-line/,
  })
  await t.rejects(read(`[${row(1)},\n{"a":"${'x'.repeat(300_000)}"}]`, { maxLine: 2048 }), { code: 'E_LINE_LENGTH', origin: { line: 2 } })
})
t.test('refused: text around an array, and holes in it', async t => {
  for (const text of [`[${row(1)}] x`, `[${row(1)}][]`, `[${row(1)},,${row(2)}]`, `[${row(1)},]`, '[,]'])
    await t.rejects(read(text), { code: 'E_PARSE' }, text)
  await t.rejects(read(`[${row(1)},\n{"a":`), { code: 'E_CUT', origin: { line: 2 } })
  await t.rejects(read(`[${row(1)},\n3]`), { code: 'E_PARSE', message: /a number, not an object/, origin: { line: 2 } })
})

t.test('refused: an array that is cut, or does not end as one', async t => {
  for (const text of [`[${row(1)}`, `[${row(1)},`, `[${row(1)}\n`, `[${row(1)}}`, '[', `[{"a":"\n"}]`])
    await t.rejects(read(text), { code: /^E_(CUT|PARSE)$/ }, text)
  for (const text of [`[${row(1)}]"x"`, `[${row(1)}]\u0001`]) await t.rejects(read(text), { code: 'E_PARSE' }, text)
  const items: Item[] = []
  await t.rejects(
    async () => {
      for await (const item of readRecords(file(`[${row(1)},\n${row(2)}\n`), ['instance'])) items.push(item)
    },
    { code: 'E_CUT', origin: { line: 3 } },
  )
  t.same(ids(items), ['i1', 'i2'], 'its whole elements come out')
})

t.test('the limit of a line is the same wherever the input is cut', async t => {
  const line = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`
  const pieces = async (text: string, size: number) => {
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, n) => Buffer.from(text.slice(n * size, (n + 1) * size)))
    const items: Item[] = []
    for await (const item of readRecords('in', [], { input: Readable.from(chunks), maxLine: 100 })) items.push(item)
    return items.length
  }
  for (const size of [1, 7, 101, 1000]) {
    t.equal(await pieces(`${line(100)}\r\n${line(100)}\r\n`, size), 2)
    t.equal(await pieces(`[${' '.repeat(300)}${line(100)},${line(100)}]${' '.repeat(300)}`, size), 2)
    for (const text of [`${line(101)}\n`, `[${line(101)},\n]`])
      await t.rejects(pieces(text, size), { code: 'E_LINE_LENGTH', origin: { line: 1 } })
  }
})

t.test('a text that looks like our mark for long integers is text', async t => {
  const [item] = await read(`${row(1).slice(0, -1)},"big":9007199254740993,"text":"\\u0023int:x #int:1"}`)
  t.match(item, { record: { big: 9007199254740993n, text: '#int:x #int:1' } })
})

t.test('files that are no text', async t => {
  for (const [bytes, message] of [
    [Buffer.from('PAR1xxxx'), /a Parquet file, not JSON: convert it/],
    [Buffer.from('28b52ffd00000000', 'hex'), /zstd data, not JSON: pipe it through 'zstd -dc'/],
    [gzipSync(row(1).repeat(1000)).subarray(0, 60), /the gzip data ends early/],
    [Buffer.concat([gzipSync(row(1).repeat(1000)).subarray(0, 30), Buffer.alloc(200, 7)]), /the gzip data is damaged/],
  ] as const)
    await t.rejects(read(bytes), { code: 'E_READ', message })
  await t.rejects(
    async () => {
      for await (const _ of readRecords(join(dir, 'absent'), [])) t.fail()
    },
    { code: 'E_READ', message: /absent: no such file: check the name/ },
  )
  await t.rejects(
    async () => {
      for await (const _ of readRecords(dir, [])) t.fail()
    },
    { code: 'E_READ', message: /a directory: name its files/ },
  )
})

t.test('bad lines can be replaced, and the rest is still read', async t => {
  const faults: string[] = []
  const items = await read(`${row(1)}\nx\n${row(2)}\n{"kind":"rollout","v":1}\n${row(3)}`, {
    fault: fault => {
      faults.push(fault.code)
      return { kind: 'foreign', bytes: Buffer.from('{}'), origin: fault.origin! }
    },
  })
  t.same(ids(items), ['i1', 'foreign', 'i2', 'foreign', 'i3'])
  t.same(faults, ['E_PARSE', 'E_RECORD'])
})

t.test("a cut last line is somebody else's affair when they say so; a cut line elsewhere never", async t => {
  t.same(ids(await read(`${row(1)}\n{"a":"x`, { cut: () => true })), ['i1'])
  await t.rejects(read(`${row(1)}\n{"a":"x`, { cut: () => false }), { code: 'E_CUT', origin: { line: 2 } })
  await t.rejects(read(`{"a":"x\n${row(1)}`, { cut: () => true }), { code: 'E_CUT', origin: { line: 1 } })
})
