import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type Command, command, option } from '#cg/cli/command.js'
import { parse } from '#cg/cli/parse.js'
import { suggest } from '#cg/cli/suggest.js'

const list = command({
  name: 'cg-x list',
  about: 'list',
  reads: [],
  writes: [],
  standalone: true,
  positionals: [
    { name: 'NAME', about: 'which' },
    { name: 'MORE', about: 'more', many: true, optional: true },
  ],
  options: { all: option.flag('all of them') },
  examples: [],
  run: input => input,
})
const root = command({
  name: 'cg-x',
  about: 'test',
  reads: ['instance'],
  writes: ['instance'],
  options: {
    promptsPerStep: option.integer(8, 'prompts', { min: 1, max: 64 }),
    'no-checkout': option.flag('no files'),
    scheme: option.choice(['codegrep-v1', 'codegrep-v3'], 'codegrep-v3', 'scheme'),
    glob: option.list('globs'),
    lr: option.number(undefined, 'rate', { check: value => (value === 0 ? 'would change nothing' : undefined) }),
    model: option.string(undefined, 'model', { metavar: 'DIR' }),
  },
  examples: [],
  subcommands: { list },
  run: input => input,
}) as Command

const dir = mkdtempSync(join(tmpdir(), 'cg-config-'))
function config(text: string, name = 'c.yaml') {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}

t.test('defaults', async t => {
  const { command, options, shared, files, given } = parse(root, [])
  t.equal(command.name, 'cg-x')
  t.same(options, { promptsPerStep: 8, 'no-checkout': false, scheme: 'codegrep-v3', glob: [], lr: undefined, model: undefined })
  t.match(shared, { jobs: undefined, seed: '0', quiet: false, verbose: 0, 'max-line': 16, 'no-run': false })
  t.same(files, [])
  t.equal(given.size, 0)
})

const accepted: [name: string, argv: string, expected: object][] = [
  ['values beside and after =', '--lr=1e-3 --scheme codegrep-v1', { options: { lr: 0.001, scheme: 'codegrep-v1' } }],
  ['negative numbers', '--lr -0.5', { options: { lr: -0.5 } }],
  ['camel case in the table is kebab case on the line', '--prompts-per-step 3', { options: { promptsPerStep: 3 } }],
  ['short options in one word', '-qkj4', { shared: { quiet: true, 'keep-going': true, jobs: 4 } }],
  ['counts', '-vv', { shared: { verbose: 2 } }],
  ['the last of two counts', '--lr 1 --lr 2', { options: { lr: 2 } }],
  ['lists are repeated', '--glob a --glob b', { options: { glob: ['a', 'b'] } }],
  ['names that begin with no', '--no-checkout --no-run', { options: { 'no-checkout': true }, shared: { 'no-run': true } }],
  ['- is a file', '- a', { files: ['-', 'a'] }],
  ['numbers are files too', '12 0x1', { files: ['12', '0x1'] }],
  ['after -- everything is a file', '-- -k --lr', { files: ['-k', '--lr'], shared: { 'keep-going': false } }],
  ['a subcommand', 'list a b c', { command: { name: 'cg-x list' }, args: { NAME: ['a'], MORE: ['b', 'c'] }, files: [] }],
  [
    'a subcommand after options',
    '--all --jobs 2 list a',
    { command: { name: 'cg-x list' }, options: { all: true }, shared: { jobs: 2 }, args: { NAME: ['a'], MORE: [] } },
  ],
  ['the greatest seed', '--seed 18446744073709551615', { shared: { seed: '18446744073709551615' } }],
]
for (const [name, argv, expected] of accepted) t.test(name, async t => t.match(parse(root, argv.split(' ')), expected))

const refused: [name: string, argv: string, message: RegExp][] = [
  ['an unknown option', '--shceme codegrep-v1', /^unknown option --shceme: did you mean --scheme\?$/],
  ['an option of another command', '--all', /^unknown option --all$/],
  ['an unknown short option', '-z', /^unknown option -z$/],
  ['camel case', '--promptsPerStep 3', /did you mean --prompts-per-step\?/],
  ['no value', '--lr', /^--lr needs a value$/],
  ['an option where a value should be', '-o --lr 3', /^-o needs a value$/],
  ['no number', '--lr fast', /^--lr: 'fast' is not a number$/],
  ['hexadecimal', '--prompts-per-step 0x10', /is not a number/],
  ['no whole number', '--prompts-per-step 1.5', /^--prompts-per-step: '1.5' is not a whole number$/],
  ['too small', '-j 0', /^--jobs: '0' is below 1$/],
  ['too great', '--prompts-per-step 65', /^--prompts-per-step: '65' is above 64$/],
  ['no choice', '--scheme codegrep-v2', /^--scheme: 'codegrep-v2' is none of codegrep-v1, codegrep-v3: did you mean codegrep-v1\?$/],
  ["the option's own check", '--lr 0', /^--lr: '0' would change nothing$/],
  ['a seed beyond 64 bits', '--seed 18446744073709551616', /^--seed: '18446744073709551616' must be a whole number/],
  ['a missing positional', 'list', /^NAME is missing$/],
  ['settings that contradict', '--no-cache --refresh', /^--no-cache contradicts --refresh: leave one out$/],
]
for (const [name, argv, message] of refused)
  t.test(`refused: ${name}`, async t => t.throws(() => parse(root, argv.split(' ')), { name: 'UsageError', message }))

t.test('a command that only has subcommands', async t => {
  const group = { ...root, subcommandOnly: true }
  t.throws(() => parse(group, []), { message: 'needs one of list' })
  t.throws(() => parse(group, ['lsit']), { message: "unknown subcommand 'lsit', not one of list: did you mean list?" })
  t.match(parse(group, ['--help']), { shared: { help: true } })
})

t.test('a command that is not built: help and version only', async t => {
  const absent = { ...root, unavailable: 'not built yet' }
  for (const argv of [[], ['x'], ['--schema'], ['--whatever', 'x']])
    t.throws(() => parse(absent, argv), { name: 'UsageError', message: 'not built yet' })
  t.match(parse(absent, ['--help']), { shared: { help: true } })
  t.match(parse(absent, ['list', 'a']), { command: { name: 'cg-x list' } })
})

t.test('a command whose option has the name of a shared one is a bug', async t => {
  t.throws(() => parse({ ...root, options: { seed: option.string('', 'seed') } }, []), { message: 'cg-x: --seed is a shared option' })
})

t.test('configuration: flags win over the file, the file over defaults', async t => {
  const file = config('prompts-per-step: 3\nscheme: codegrep-v1\nglob: [a, 1]\nno-checkout: true\nlr:\njobs: 5\n')
  const { options, shared, given } = parse(root, ['--config', file, '--scheme', 'codegrep-v3'])
  t.match(options, { promptsPerStep: 3, scheme: 'codegrep-v3', glob: ['a', '1'], 'no-checkout': true, lr: undefined })
  t.equal(shared.jobs, 5)
  t.same([...given].sort(), ['config', 'glob', 'jobs', 'no-checkout', 'promptsPerStep', 'scheme'])
})

t.test('configuration in JSON', async t => {
  t.match(parse(root, ['--config', config('{"lr": 0.5, "model": "m"}', 'c.json')]), { options: { lr: 0.5, model: 'm' } })
  t.match(parse(root, ['--config', config('')]), { options: { lr: undefined } })
})

for (const [name, text, message] of [
  [
    'an unknown name',
    'lr: 1\njbos: 2\n',
    /c\.yaml: unknown option 'jbos': did you mean 'jobs'\?$|unknown option 'jbos': did you mean jobs\?$/,
  ],
  ['a name of the table', 'promptsPerStep: 2\n', /unknown option 'promptsPerStep'/],
  ['broken text', 'lr: 1\nglob: [a\n', /c\.yaml:\d+: not YAML or JSON: /],
  ['a name twice', 'lr: 1\nlr: 2\n', /c\.yaml:2: not YAML or JSON: Map keys must be unique/],
  ['a list', '- lr\n', /not a map of options/],
  ['a wrong type', 'lr: fast\n', /lr in .*c\.yaml: 'fast' is not a number/],
  ['a word for a flag', 'no-checkout: 1\n', /no-checkout in .*: 1 is not true or false/],
  ['a map for a text', 'model: {a: 1}\n', /model in .*: \{"a":1\} is not a text/],
] as const)
  t.test(`configuration refused: ${name}`, async t =>
    t.throws(() => parse(root, ['--config', config(text)]), { name: 'UsageError', message }),
  )

t.test('a configuration file that is not there', async t =>
  t.throws(() => parse(root, ['--config', join(dir, 'no')]), { code: 'E_READ', message: /no such file: check --config/ }),
)

t.test('suggestions', async t => {
  const known = ['jobs', 'scheme', 'std', 'refresh', 'prompts-per-step']
  for (const [word, expected] of [
    ['jbos', 'jobs'],
    ['job', 'jobs'],
    ['sheme', 'scheme'],
    ['fresh', undefined],
    ['reresh', 'refresh'],
    ['xyz', undefined],
    ['prompt-per-steps', 'prompts-per-step'],
  ] as const)
    t.equal(suggest(word, known), expected, word)
})
