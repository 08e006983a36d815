import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { mayColor, stageName } from '#cg/cli/context.js'
import { inputDigest } from '#cg/cli/digest.js'
import { expandInputs } from '#cg/cli/inputs.js'
import { decides, flagName, option } from '#cg/cli/options.js'
import { followUpstream } from '#cg/cli/upstream.js'
import { sha256 } from '#cg/record/canonical.js'

const run = (id: string, command = 'cg-x') => ({ kind: 'run', id, command })
const end = (run: string, ok = true) => ({ kind: 'end', run, stage: 'x', ok })

const streams: [name: string, lines: { kind: string; [field: string]: unknown }[], open: boolean, early: string[]][] = [
  ['no runs', [{ kind: 'instance' }], false, []],
  ['one that ended', [run('a'), end('a')], false, []],
  ['one inside the other', [run('b', 'cg-y'), run('a'), end('a'), end('b')], false, []],
  ['one after the other', [run('a'), end('a'), run('a'), end('a')], false, []],
  ['no end', [run('b', 'cg-y'), run('a'), end('a')], true, ['cg-y']],
  ['an end that is not ok', [run('b', 'cg-y'), run('a'), end('a', false), end('b')], false, ['cg-x']],
  ['the same run twice, one end', [run('a'), end('a'), run('a')], true, ['cg-x']],
  ['an end without a run, as filters leave it', [end('a')], false, []],
  ['a bad end without a run', [end('a', false)], false, ['cg-x']],
]
for (const [name, lines, open, early] of streams)
  t.test(`upstream: ${name}`, async t => {
    const upstream = followUpstream()
    for (const line of lines) upstream.observe(line.kind, line)
    t.equal(upstream.open(), open)
    t.same(upstream.early(), early)
  })

function digest(...lines: string[]) {
  const made = inputDigest()
  for (const line of lines) made.add(JSON.parse(line), Buffer.from(line))
  return made.hex()
}

t.test('the digest is that of the lines', async t => t.equal(digest('{"a": 1}', '{"b":2}'), sha256('{"a": 1}\n{"b":2}\n')))
t.test('the digest knows no clock and no place', async t => {
  const line = (ms: number, path: string) =>
    `{"kind":"instance","calls":[{"id":"c","timing":{"ms":${ms}}}],"timing":${ms},"worktree":{"commit":"c","tree":"t","path":"${path}","bare":"${path}"}}`
  t.equal(digest(line(1, '/a')), digest(line(2, '/b')))
  t.not(digest(line(1, '/a')), digest(line(1, '/a').replace('"tree":"t"', '"tree":"u"')))
  t.not(digest('{"timing":1,"a":1}'), digest('{"timing":1,"a":2}'))
  t.equal(digest('{"timing":1,"a":1e999}'), sha256('{"timing":1,"a":1e999}\n'), 'no canonical form: the bytes')
})

t.test('input files', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'cg-inputs-'))
  mkdirSync(join(dir, 'sub'))
  for (const name of ['b.ndjson', 'B.ndjson', 'a.ndjson', 'é.ndjson', 'sub/c.ndjson', 'x[1].ndjson']) writeFileSync(join(dir, name), '')
  const expand = async (...names: string[]) =>
    (await expandInputs(names.map(name => (name === '-' ? name : join(dir, name))))).map(name => name.replace(`${dir}/`, ''))
  t.same(await expandInputs([]), ['-'])
  t.same(await expand('b.ndjson', '-', 'a.ndjson'), ['b.ndjson', '-', 'a.ndjson'], 'in the order given')
  t.same(await expand('?.ndjson'), ['B.ndjson', 'a.ndjson', 'b.ndjson', 'é.ndjson'], 'bytewise')
  t.same(await expand('**/c.ndjson'), ['sub/c.ndjson'])
  t.same(await expand('x[1].ndjson'), ['x[1].ndjson'], 'a name that exists is no pattern')
  await t.rejects(expand('*.json'), { code: 'E_READ', message: /\*\.json: no file matches: check the pattern/ })
  await t.rejects(expand('absent'), { code: 'E_READ', message: /absent: no such file: check the name/ })
  await t.rejects(expand('-', '-'), { code: 'E_READ', message: /standard input can be read once/ })
})

t.test('which options decide the output', async t => {
  t.ok(decides(option.number(1, 'a number')))
  t.notOk(decides(option.string(undefined, 'a place', { metavar: 'DIR' })))
  t.notOk(decides(option.flag('no matter', { decides: false })))
  t.ok(decides(option.string(undefined, 'a file that matters', { metavar: 'FILE', decides: true })))
})

t.test('names', async t => {
  t.equal(stageName('cg-eval score'), 'eval score')
  t.equal(flagName('promptsPerStep'), 'prompts-per-step')
})

t.test('colours', async t => {
  const { NO_COLOR, TERM } = process.env
  delete process.env.NO_COLOR
  process.env.TERM = 'xterm'
  t.ok(mayColor('auto', true))
  t.notOk(mayColor('auto', false))
  t.ok(mayColor('always', false))
  t.notOk(mayColor('never', true))
  process.env.NO_COLOR = '1'
  t.notOk(mayColor('auto', true))
  delete process.env.NO_COLOR
  process.env.TERM = 'dumb'
  t.notOk(mayColor('auto', true))
  if (NO_COLOR !== undefined) process.env.NO_COLOR = NO_COLOR
  process.env.TERM = TERM
})
