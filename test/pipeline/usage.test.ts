import { join } from 'node:path'
import t from 'tap'
import { echo, echoStatuses, rows, run, scratch, shell } from './process.js'

t.test('help, version and schema go to standard output', async t => {
  const help = await run(echo, ['--help'], { env: { LANG: 'de_DE.UTF-8', LC_ALL: 'de_DE.UTF-8', COLUMNS: '40' } })
  t.match(help, { status: 0, stderr: '', stdout: /^usage: cg-echo \[OPTION\]\.\.\. \[FILE\]\.\.\.\n\nAdd a word to every instance\.\n/ })
  t.match(help.stdout, /^Exit status:\n {2}0 +all done/m)
  t.equal((await run(echo, ['-h'], {})).stdout, help.stdout)
  t.match(await run(echo, ['list', '--help']), { status: 0, stdout: /^usage: cg-echo list \[OPTION\]\.\.\. FIRST \[REST\.\.\.\]\n/ })
  t.match(await run(echo, ['--version']), { status: 0, stderr: '', stdout: /^cg-echo \d+\.\d+\.\d+\n$/ })
  const schema = JSON.parse((await run(echo, ['--schema'])).stdout)
  t.match(schema, { title: 'cg-echo', reads: { anyOf: [{ $ref: '#/$defs/instance' }] }, $defs: { instance: { type: 'object' } } })
})

t.test('help into a pipe that closes', async t =>
  t.match(await shell(`$ECHO --help | head -1; ${echoStatuses}`), {
    stdout: 'usage: cg-echo [OPTION]... [FILE]...\n0 0\n',
    stderr: '',
  }),
)

t.test('--dry-run reads nothing, writes no record, and says what would be done', async t => {
  const { stdout, stderr, status } = await run(echo, ['--dry-run', '--word', 'x', '-j', '3'], { input: null })
  t.equal(stdout, '')
  t.equal(status, 0)
  t.match(stderr, /^cg-echo: word: x$/m)
  t.match(stderr, /^cg-echo: style: plain \(default\)$/m)
  t.match(stderr, /^cg-echo: seed 0, 3 jobs$/m)
  t.match(stderr, /^cg-echo: reads standard input$/m)
  t.match(await run(echo, ['--dry-run', 'absent'], { input: null }), { status: 1, stderr: /absent: no such file/ })
})

t.test('wrong usage: two lines, status 2, nothing on standard output', async t => {
  for (const [args, message] of [
    [['--wrod', 'x'], 'unknown option --wrod: did you mean --word?'],
    [['--size', 'much'], "--size: 'much' is not a number"],
    [['--no-cache', '--cache-only'], '--no-cache contradicts --cache-only: leave one out'],
    [['list'], 'FIRST is missing'],
  ] as const)
    t.match(await run(echo, args), { stdout: '', stderr: `cg-echo: ${message}\nTry 'cg-echo --help'.\n`, status: 2 })
})

t.test('an option that is found wrong late: status 2 as well', async t => {
  const { stderr, status } = await run(echo, ['--refuse'], { input: rows(1) })
  t.equal(status, 2)
  t.match(stderr, /^cg-echo: --refuse: these options do not go together$/m)
})

const script = (await shell('command -v script')).status === 0
t.test(
  'a terminal as standard input and no file: short usage, status 2',
  { skip: script ? false : 'script(1) is not installed' },
  async t => {
    const { stdout } = await shell(`script -qec '$ECHO; echo status $?' /dev/null < /dev/null`)
    t.match(stdout.replaceAll('\r', ''), /^usage: cg-echo \[OPTION\]\.\.\. \[FILE\]\.\.\.\nTry 'cg-echo --help'\.\nstatus 2\n/m)
  },
)

t.test('a configuration file, and what is wrong with one', async t => {
  const { dir, file } = scratch(t)
  const good = await run(echo, ['-q', '--no-run', '--config', file('c.yaml', 'word: hi\nstyle: loud\n')], { input: rows(1) })
  t.match(good.stdout, '"echo":"HI"')
  t.match(await run(echo, ['--config', file('d.json', '{"wrod": 1}')]), {
    status: 2,
    stderr: `cg-echo: ${join(dir, 'd.json')}: unknown option 'wrod': did you mean word?\nTry 'cg-echo --help'.\n`,
  })
  t.match(await run(echo, ['--config', join(dir, 'no')]), { status: 1, stderr: /no such file: check --config/ })
})

t.test('completion', async t => {
  const { stdout } = await run(echo, ['completion'])
  t.match(stdout, /cg-echo --get-yargs-completions/)
  const words = async (...typed: string[]) =>
    (await run(echo, ['--get-yargs-completions', 'cg-echo', ...typed], { env: { SHELL: '/bin/bash' } })).stdout.split('\n')
  t.ok((await words('--wo')).includes('--word'))
  t.ok((await words('--keep')).includes('--keep-going'))
  t.ok((await words('')).includes('list'))
  t.same(
    (await words('--style', '')).filter(word => ['plain', 'loud'].includes(word)),
    ['plain', 'loud'],
  )
  t.notMatch((await run(echo, ['--help'])).stdout, /completion/, 'hidden')
})
