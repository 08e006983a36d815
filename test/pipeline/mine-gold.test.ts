import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import command from '#cg/cli/mine.js'
import { inProcess } from './in-process.js'
import { records, run, scratch } from './process.js'

const patch = 'diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -2,2 +2,2 @@\n a\n-b\n+B\n'
const row = (fields: object) =>
  `${JSON.stringify({ instance_id: 'i1', repo: 'o/r', base_commit: 'c', problem_statement: 'p', ...fields })}\n`
const gold = (input: string, ...args: string[]) => inProcess(command, ['gold', '--no-cache', ...args], input)

t.test('instance in, instance with target out', async t => {
  const { stdout, status } = await run('bin/cg-mine', ['gold', '--no-run', '--no-cache'], { input: row({ patch, hints_text: 'kept' }) })
  t.equal(status, 0)
  t.same(records(stdout), [
    {
      kind: 'instance',
      v: 1,
      instance_id: 'i1',
      repo: 'o/r',
      base_commit: 'c',
      problem_statement: 'p',
      patch,
      hints_text: 'kept',
      target: {
        gold_rules: 'codegrep/1',
        files: [{ path: 'x.py', weight: 1, source: 'patch' }],
        ranges: [{ path: 'x.py', start: 3, end: 3 }],
        modules: [],
        functions: [],
      },
    },
  ])
})

t.test('one range a run', async t => {
  const wide = 'diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,1 @@\n-a\n b\n-c\n'
  const ranges = async (...args: string[]) => (await gold(row({ patch: wide }), ...args)).records[0]!.target as { ranges: object[] }
  t.equal((await ranges()).ranges.length, 1)
  t.match(await ranges('--range-rule=run'), {
    gold_rules: 'codegrep-run/1',
    ranges: [
      { start: 1, end: 1 },
      { start: 3, end: 3 },
    ],
  })
})

t.test('patches without prefixes', async t => {
  const bare = patch.replaceAll(/ [ab]\/x/g, ' src/x')
  const files = async (...args: string[]) =>
    ((await gold(row({ patch: bare }), ...args)).records[0]!.target as { files: { path: string }[] }).files
  t.match(await files(), [{ path: 'src/x.py' }])
  t.match(await files('--strip=1'), [{ path: 'x.py' }])
})

const bad: [name: string, fields: object, message: string][] = [
  ['no patch', {}, "-:2: i1 has no patch to take the target from: use rows that have the field 'patch'"],
  ['an empty patch', { patch: '\n' }, "-:2: i1 has no patch to take the target from: use rows that have the field 'patch'"],
  [
    'a cut patch',
    { patch: patch.slice(0, -3) },
    '-:2: i1: line 6 of its patch: the text ends inside the hunk of line 4 (@@ -2,2 +2,2 @@): 0 old and 1 new lines are missing',
  ],
  ['no patch at all', { patch: 'see the pull request' }, '-:2: i1: line 1 of its patch: no diff in the text'],
]

for (const [name, fields, message] of bad)
  t.test(name, async t => {
    const input = row({ patch }) + row(fields) + row({ patch })
    const stopped = await gold(input)
    t.equal(stopped.records.length, 1)
    t.match(stopped.said, message)
    const went = await gold(input, '-k')
    t.match(went.records, [{ target: {} }, { kind: 'fault', code: 'E_PATCH', of: 'i1' }, { target: {} }])
  })

t.test('the tree clips an insertion at the end of a file', async t => {
  const { dir } = scratch(t)
  const repository = join(dir, 'o', 'r')
  mkdirSync(repository, { recursive: true })
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=n@example.org', ...args], { cwd: repository, encoding: 'utf8' })
  git('init', '-q')
  writeFileSync(join(repository, 'x.py'), 'a\nb')
  git('add', '.')
  git('commit', '-q', '-m', 'one')
  const base_commit = git('rev-parse', 'HEAD').trim()
  const append = 'diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -2,0 +3 @@\n+c\n'

  const env = { CG_STORE: join(dir, 'store') }
  const prepared = await run('bin/cg-worktree', ['--no-run', '--no-cache', '--source', join(dir, '{repo}')], {
    input: row({ base_commit, patch: append }),
    env,
  })
  t.equal(prepared.status, 0, prepared.stderr)
  const ranges = async (input: string) => {
    const { stdout, stderr } = await run('bin/cg-mine', ['gold', '--no-run', '--no-cache'], { input, env })
    return (records(stdout)[0]?.target as { ranges: object[] } | undefined)?.ranges ?? stderr
  }
  t.same(await ranges(prepared.stdout), [{ path: 'x.py', start: 2, end: 2 }])
  t.same(await ranges(row({ base_commit, patch: append })), [{ path: 'x.py', start: 2, end: 3 }], 'the patch alone cannot know')
})

t.test('every gold patch of the fixtures can be read, and a second run is cached', async t => {
  const { dir } = scratch(t)
  const args = ['gold', '--no-run', '--cache', join(dir, 'cache.db'), 'fixtures/instances/dev.ndjson', 'fixtures/instances/train.ndjson']
  const first = await run('bin/cg-mine', args)
  t.equal(first.status, 0, first.stderr)
  const targets = records(first.stdout).map(record => record.target as { files: object[]; ranges: object[] })
  t.ok(targets.length > 100)
  t.ok(targets.every(target => target.files.length > 0))
  const second = await run('bin/cg-mine', args)
  t.equal(second.stdout, first.stdout)
  t.match(second.stderr, new RegExp(`${targets.length} in, ${targets.length} out, ${targets.length} cached`))
})
