import { spawnSync } from 'node:child_process'
import t from 'tap'
import { command, commandGroup, option } from '#cg/cli/command.js'
import { exitMeanings } from '#cg/cli/exits.js'
import { help, shortUsage, usageLine } from '#cg/cli/help.js'
import { commandPage } from '#cg/cli/man-page.js'
import { recordPage } from '#cg/cli/man-record.js'
import { flagName, sharedOptions } from '#cg/cli/options.js'
import { roff } from '#cg/cli/roff.js'
import { commandSchema } from '#cg/cli/schema.js'
import { schemas } from '#cg/record/schema.js'

const sub = command({
  name: 'cg-x sub',
  about: 'do a part',
  reads: [],
  writes: [],
  standalone: true,
  positionals: [{ name: 'NAME', about: 'of what' }],
  options: {},
  examples: [['part', 'cg-x sub a']],
  run: input => input,
})
const cmd = command({
  name: 'cg-x',
  about: 'do something to rollouts that takes a sentence of more than eighty columns to say in full',
  notes: ["'Tis a note.", '.A note with a leading dot and a \\ in it.'],
  reads: ['rollout'],
  writes: ['rollout', 'score'],
  options: {
    scheme: option.choice(['a', 'b'], 'a', 'how'),
    aVeryLongNameOfAnOption: option.number(0.5, 'how much'),
    globs: option.list('which'),
    plain: option.flag('or not'),
    where: option.string(undefined, 'where', { metavar: 'DIR', alias: 'w' }),
  },
  examples: [['try it', "cg-x -w /tmp 'a b'"]],
  subcommands: { sub },
  run: input => input,
})

t.test('usage lines', async t => {
  t.equal(usageLine(cmd), 'cg-x [OPTION]... [FILE]...')
  t.equal(usageLine(sub), 'cg-x sub [OPTION]... NAME')
  t.equal(usageLine(commandGroup({ name: 'cg-y', about: '', examples: [], subcommands: { sub } })), 'cg-y SUBCOMMAND [OPTION]...')
  t.equal(shortUsage(cmd), "usage: cg-x [OPTION]... [FILE]...\nTry 'cg-x --help'.\n")
})

t.test('help', async t => {
  const text = help(cmd)
  for (const line of text.split('\n')) t.ok(line.length <= 80, line)
  t.match(text, /^ {6}--scheme NAME {7}how \(one of a, b; default a\)$/m)
  t.match(text, /^ {6}--a-very-long-name-of-an-option N\n {26}how much \(default 0\.5\)$/m)
  t.match(text, /^ {6}--globs TEXT {8}which \(may be repeated\)$/m)
  t.match(text, /^ {6}--plain {13}or not$/m)
  t.match(text, /^ {2}-w, --where DIR {9}where$/m)
  t.match(text, /^ {2}sub {21}do a part$/m)
  t.ok(text.replaceAll('\n', ' ').includes('Reads rollout records; writes rollout and score records; passes every other line on.'))
  t.match(text, /^ {2}try it:\n {4}cg-x -w \/tmp 'a b'$/m)
  for (const [status, meaning] of exitMeanings) t.ok(text.includes(`  ${status.padEnd(6)} ${meaning}\n`), status)
  for (const name of Object.keys(sharedOptions)) t.ok(text.includes(`--${flagName(name)}`), name)
})

t.test('every option is in help and man page', async t => {
  const page = commandPage(cmd)
  for (const name of [...Object.keys(cmd.options), ...Object.keys(sharedOptions)]) {
    t.ok(help(cmd).includes(`--${flagName(name)}`), name)
    t.ok(page.includes(roff(`--${flagName(name)}`)), name)
  }
})

t.test('roff', async t => {
  t.equal(roff("'a\n.b\\-c"), "\\&'a\n\\&.b\\e\\-c")
  t.equal(roff('½ c̄'), '\\[u00BD] c\\[u0304]')
})

const groff = spawnSync('groff', ['--version']).status === 0
for (const [name, page] of [
  ['a command', commandPage(cmd)],
  ['cg-record', recordPage()],
] as const)
  t.test(`the man page of ${name} is good roff`, { skip: groff ? false : 'groff is not installed' }, async t => {
    const { stdout, stderr, status } = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-P-cbou'], { input: page, encoding: 'utf8' })
    t.equal(stderr, '')
    t.equal(status, 0)
    t.match(stdout, name === 'a command' ? /'Tis a note\./ : /E_PARSE/)
    if (name === 'a command') t.match(stdout, /^ +\.A note with a leading dot and a \\ in it\.$/m)
  })

t.test('cg-record tells of every kind', async t => {
  for (const kind of Object.keys(schemas)) t.ok(recordPage().includes(`.SS ${kind}\n`), kind)
})

t.test('schemas', async t => {
  const schema = commandSchema(cmd)
  t.match(schema, {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'cg-x',
    reads: { anyOf: [{ $ref: '#/$defs/rollout' }] },
  })
  t.same(Object.keys(schema.$defs as object).sort(), ['barrier', 'end', 'fault', 'rollout', 'run', 'score'])
  t.match((schema.$defs as { rollout: unknown }).rollout, {
    type: 'object',
    properties: { turns: { type: 'array' }, stop: { enum: ['answer'] } },
  })
  t.match(commandSchema(sub), { reads: false, writes: false, $defs: {} })
})
