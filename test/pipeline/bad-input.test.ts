import { gzipSync } from 'node:zlib'
import t from 'tap'
import { echo, records, rows, run, scratch } from './process.js'

/** What stands before a bad line is always written, and the message names the line, shows it, and says what to do. */
const cases: [name: string, line: string, stderr: string | RegExp][] = [
  [
    'a truncated line',
    '{"instance_id":"x","repo":"o',
    'FILE:3: not JSON: a string without its closing quote: the line is cut off\n  {"instance_id":"x","repo":"o\n                            ^\n',
  ],
  ['not JSON', 'instance 3', 'FILE:3: not JSON: a word without quotes: write one JSON object a line\n  instance 3\n  ^\n'],
  ['null', 'null', 'FILE:3: null, not an object: write one JSON object a line\n  null\n  ^\n'],
  ['a number', '3', 'FILE:3: a number, not an object: write one JSON object a line\n  3\n  ^\n'],
  [
    'two objects',
    '{"a":1} {"b":2}',
    'FILE:3: not JSON: a second object on the line: write one JSON object a line\n  {"a":1} {"b":2}\n          ^\n',
  ],
  [
    'a wrong type',
    '{"instance_id":7,"repo":"o/r","base_commit":"c","problem_statement":"p"}',
    'FILE:3: not a good instance record: instance_id: expected string, received number: see cg-record(5)\n',
  ],
  [
    'a missing field',
    '{"kind":"instance","v":1,"instance_id":"x","repo":"o/r"}',
    'FILE:3: not a good instance record: base_commit: missing (string) (and 1 more): see cg-record(5)\n',
  ],
  [
    'an unknown version',
    '{"kind":"instance","v":2}',
    'FILE:3: kind instance in version 2, and this cg knows version 1: use the cg that wrote it\n',
  ],
]
for (const [name, line, stderr] of cases)
  t.test(name, async t => {
    const { file } = scratch(t)
    const path = file('in.ndjson', `${rows(1)}\n${line}\n${rows(1, 1)}`)
    const stop = await run(echo, [path])
    t.equal(stop.status, 1)
    t.ok(stop.stderr.startsWith(`cg-echo: ${String(stderr).replaceAll('FILE', path)}`), stop.stderr)
    t.match(records(stop.stdout), [{ kind: 'run' }, { instance_id: 'i0' }, { kind: 'end', ok: false }])
    t.equal(records(stop.stdout).length, 3)

    const go = await run(echo, ['-k'], { input: `${rows(1)}\n${line}\n${rows(1, 1)}` })
    t.equal(go.status, 3)
    t.match(records(go.stdout), [
      { kind: 'run' },
      { instance_id: 'i0' },
      { kind: 'fault', of: 'line 3', stage: 'echo' },
      { instance_id: 'i1' },
      { kind: 'end', ok: true, faults: 1 },
    ])
  })

t.test('the same from standard input, gzip, and an array', async t => {
  const { file } = scratch(t)
  t.match((await run(echo, [], { input: `${rows(2)}{` })).stderr, /^cg-echo: -:3: not JSON: /)
  const packed = file('in.gz', gzipSync(`${rows(2)}{"a":}\n`))
  t.match((await run(echo, [packed])).stderr, `cg-echo: ${packed}:3: not JSON: expected a value`)
  const array = file('in.json', `[\n${rows(2).trimEnd().replaceAll('\n', ',\n')},\n{"a":1 "b":2}]`)
  const { stdout, stderr, status } = await run(echo, [array])
  t.equal(status, 1)
  t.match(stderr, `cg-echo: ${array}:4: not JSON: expected ',' or '}'`)
  t.equal(records(stdout).length, 4)
})

t.test('a line that is too long', async t => {
  const { file } = scratch(t)
  const path = file('in.ndjson', `${rows(1)}{"a":"${'x'.repeat(1 << 21)}"}\n`)
  const { stdout, stderr, status } = await run(echo, ['--max-line', '1', path])
  t.equal(status, 1)
  t.match(stderr, `cg-echo: ${path}:2: a line of more than 1 MiB`)
  t.match(records(stdout)[1], { instance_id: 'i0' })
  t.equal((await run(echo, ['-q', '--max-line', '3', path])).status, 0)
})

t.test('files that are no records', async t => {
  const { file, dir } = scratch(t)
  const cut = gzipSync(rows(200)).subarray(0, 100)
  for (const [path, message] of [
    [file('cut.gz', cut), 'the gzip data ends early: fetch or pack the file again'],
    [file('x.parquet', 'PAR1....'), 'a Parquet file, not JSON: convert it to one JSON object a line first'],
    [dir, "a directory: name its files, for example 'DIR/*.ndjson'"],
  ] as const) {
    const { stderr, status } = await run(echo, [path])
    t.equal(status, 1)
    t.match(stderr, `cg-echo: ${path}: ${message}\n`)
  }
})

t.test('a record that cannot be written ends the command, and what was written stays', async t => {
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`
  const { stdout, stderr, status } = await run(echo, [], { input: `${rows(1)}${rows(1, 1).replace('}\n', `,"deep":${deep}}\n`)}` })
  t.equal(status, 1)
  t.match(stderr, /^cg-echo: a record nested too deeply to be written: flatten it\n/)
  t.match(records(stdout), [{ kind: 'run' }, { instance_id: 'i0' }, { kind: 'end', ok: false }])
})
