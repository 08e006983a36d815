import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { commitChange, git, makeRepository } from '../unit/repo/make-repository.js'
import { records, run, scratch } from './process.js'

t.setTimeout(300_000)

const command = 'bin/cg-worktree'

t.test('instances in, prepared instances out; each pair once, order kept, the rest passes by', async t => {
  const { dir, instances, worktree } = setUp(t)
  const { commits } = instances
  const foreign = '{"kind":"note","text":"kept"}'
  const rows = [0, 1, 0, 2, 1, 0].map((n, i) => instances.row(`i${i}`, commits[n]!, { hints_text: 'kept' }))
  const input = `${rows.slice(0, 3).join('\n')}\n${foreign}\n${rows.slice(3).join('\n')}\n`
  const first = await worktree(['--no-run'], input)
  t.equal(first.status, 0)
  t.match(first.stderr, /^cg-worktree: 6 in, 6 out, 0 cached, 0 faults, [\d.]+ s\n$/)
  const out = records(first.stdout)
  t.strictSame(
    out.map(record => record.instance_id ?? record.kind),
    ['i0', 'i1', 'i2', 'note', 'i3', 'i4', 'i5'],
  )
  t.match(out[0], {
    kind: 'instance',
    hints_text: 'kept',
    worktree: {
      commit: commits[0],
      tree: git(join(dir, 'mirror/lib'), 'rev-parse', `${commits[0]}^{tree}`).trim(),
      path: join(dir, 'store/trees/acme+lib', commits[0]!),
      bare: join(dir, 'store/repos/acme+lib.git'),
    },
  })
  t.strictSame(out[2]!.worktree, out[0]!.worktree)
  t.ok(first.stdout.includes(`\n${foreign}\n`), 'as the bytes it was')
  t.equal(readdirSync(join(dir, 'store/trees/acme+lib')).length, 6, 'three trees and their marks')

  const again = await worktree(['--no-run', '-j', '1'], input)
  t.equal(again.stdout, first.stdout, 'the same bytes from what is there, at any -j')
  t.match(again.stderr, /6 in, 6 out, 6 cached/)
})

t.test('a row that cannot be prepared', async t => {
  const { instances, worktree } = setUp(t)
  const good = instances.row('good', instances.commits[0]!)
  const missing = instances.row('bad', 'f'.repeat(40))
  const stopped = await worktree(['--no-run'], `${good}\n${missing}\n${good}\n`)
  t.equal(stopped.status, 1)
  t.match(stopped.stderr, /^cg-worktree: -:2: acme\/lib has no commit f{40}: .* does not offer it; check base_commit/m)
  t.equal(records(stopped.stdout)[0]!.instance_id, 'good', 'what was done is not lost')

  const { status, stdout, stderr } = await worktree(
    ['--no-run', '-k'],
    `${good}\n${missing}\n${missing}\n${instances.row('x', 'abc1234')}\n${instances.row('gone', 'a'.repeat(40), { repo: 'acme/gone' })}\n`,
  )
  t.equal(status, 3)
  t.match(records(stdout), [
    { kind: 'instance' },
    { kind: 'fault', stage: 'worktree', code: 'E_COMMIT_MISSING', of: 'bad', retry: false },
    { kind: 'fault', code: 'E_COMMIT_MISSING', of: 'bad' },
    { kind: 'fault', code: 'E_COMMIT', of: 'x', message: /write all 40 digits/ },
    { kind: 'fault', code: 'E_SOURCE', of: 'gone', message: /acme\/gone: there is no .*gone: check --source/ },
  ])
  t.match(stderr, /-:2: .*\n.*-:3: /, 'rows that share a failure are named one by one')
  t.equal((await worktree(['--no-run', '-k'], `${missing}\n`)).status, 4)
})

t.test('an unreachable repository', async t => {
  const { instances, dir } = setUp(t)
  const row = instances.row('i', instances.commits[0]!)
  const { status, stderr } = await run(command, ['--store', join(dir, 'store'), '--source', 'http://127.0.0.1:9/{repo}.git'], {
    input: row,
    env: { NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' },
  })
  t.equal(status, 1)
  t.match(
    stderr,
    /^cg-worktree: -:1: acme\/lib: cannot read http:\/\/127\.0\.0\.1:9\/acme\/lib\.git: .*(?:connect|refused).*: check --source/im,
  )
})

t.test('a source that cannot be', async t => {
  const { worktree } = setUp(t)
  for (const source of ['ext::sh -c id', '{what}', '--upload-pack=x']) {
    const { status, stderr } = await worktree([`--source=${source}`], '')
    t.equal(status, 2)
    t.match(stderr, /^cg-worktree: --source/)
  }
})

t.test('--no-checkout writes no files, and the tools still read', async t => {
  const { dir, instances, worktree } = setUp(t)
  const { stdout } = await worktree(['--no-run', '--no-checkout'], instances.row('i', instances.commits[0]!))
  t.notOk(existsSync(join(dir, 'store/trees')))
  t.equal((records(stdout)[0]!.worktree as { path?: string }).path, undefined)
  writeFileSync(join(dir, 'prepared.ndjson'), stdout)
  const { stdout: text } = await run(command, [
    'tool',
    'read',
    '{"path": "a.py"}',
    '--instance',
    join(dir, 'prepared.ndjson'),
    '--no-cache',
  ])
  t.equal(text, '[a.py: lines 1-1 of 1]\n1:v = 0\n')
})

t.test('list, verify, prune', async t => {
  const { dir, instances, worktree } = setUp(t)
  const { commits } = instances
  await worktree([], commits.map((commit, i) => instances.row(`i${i}`, commit)).join('\n'))
  const on = (...args: string[]) => run(command, [...args, '--store', join(dir, 'store')], { env: { CG_CACHE: join(dir, 'cache.db') } })

  const listed = records((await on('list')).stdout)
  t.strictSame(
    listed.map(({ commit }) => commit),
    [...commits].sort(),
  )
  t.match(listed[0], { kind: 'tree', repo: 'acme/lib', files: 2, ready: true, leases: [] })
  t.type(Date.parse(listed[0]!.last_use as string), 'number')

  t.match(await on('verify'), { status: 0, stderr: /3 worktrees as their commits say/ })
  const path = (commit: string) => join(dir, 'store/trees/acme+lib', commit)
  writeFileSync(join(path(commits[0]!), 'a.py'), 'changed')
  const found = await on('verify')
  t.equal(found.status, 1)
  t.match(found.stderr, /1 of 3 worktrees damaged: repair with --fix/)
  t.match(
    records(found.stdout).find(({ ok }) => !ok),
    { commit: commits[0], problems: ['a.py is changed'] },
  )
  t.match(await on('verify', '--fix'), { status: 0 })
  t.match(await on('verify'), { status: 0 })

  t.match(await on('prune'), { status: 2, stderr: /say which: --older-than AGE, or --all/ })
  t.match(await on('prune', '--older-than', 'soon'), { status: 2, stderr: /not an age/ })
  t.match(await on('prune', '--older-than', '1h'), { status: 0, stderr: /0 worktrees removed/ })
  t.match(await on('prune', '--all', '--dry-run'), { status: 0, stderr: /(?:would go: acme\/lib [0-9a-f]{40}\n.*){3}/ })
  t.equal(records((await on('list')).stdout).length, 3)
  t.match(await on('prune', '--all', '--results'), { status: 0, stderr: /3 worktrees removed, \d+ B\n.*0 results, 0 B evicted/ })
  t.equal((await on('list')).stdout, '')
  t.ok(existsSync(join(dir, 'store/repos/acme+lib.git')))
})

t.test('a tree in use stays', async t => {
  const { dir, instances, worktree } = setUp(t)
  await worktree([], instances.row('i', instances.commits[0]!))
  const path = join(dir, 'store/trees/acme+lib', instances.commits[0]!)
  const { leaseTree } = await import('#cg/repo/lease.js')
  const release = leaseTree(path)
  t.match(await run(command, ['prune', '--all', '--store', join(dir, 'store')]), {
    status: 0,
    stderr: /0 worktrees removed, 0 B; 1 in use/,
  })
  t.match(await run(command, ['list', '--store', join(dir, 'store')]), {
    stdout: new RegExp(`"leases":\\[\\{"host":"[^"]*","pid":${process.pid}`),
  })
  t.ok(existsSync(join(path, 'a.py')))
  release()
  t.match(await run(command, ['prune', '--all', '--store', join(dir, 'store')]), { stderr: /1 worktree removed/ })
})

t.test('tool: one call by hand', async t => {
  const { dir, instances, worktree } = setUp(t)
  const { stdout } = await worktree([], [0, 2].map(n => instances.row(`i${n}`, instances.commits[n]!)).join('\n'))
  writeFileSync(join(dir, 'prepared.ndjson'), stdout)
  const tool = (...args: string[]) => run(command, ['tool', ...args, '--store', join(dir, 'store'), '--cache', join(dir, 'cache.db')])
  const prepared = ['--instance', join(dir, 'prepared.ndjson')]
  t.equal((await tool('grep', '{"pattern": "v ="}', ...prepared)).stdout, 'a.py:1:v = 0\n')
  t.equal((await tool('grep', '{"pattern": "v ="}', ...prepared, '--id', 'i2')).stdout, 'a.py:1:v = 2\n')
  t.equal((await tool('grep', '{"pattern": "v ="}', ...prepared, '--id', 'i2')).stdout, 'a.py:1:v = 2\n', 'and from the cache')
  t.equal((await tool('nothing', '{}', ...prepared)).stdout, '[unknown tool: nothing]\n')
  t.match(await tool('grep', '{"pattern": "v ="}', ...prepared, '--id', 'i9'), { status: 1, stderr: /no instance i9 in it/ })
  t.match(await tool('grep', '{pattern}', ...prepared), { status: 2, stderr: /JSON is not JSON/ })
  t.match(await tool('grep', '{}'), { status: 2, stderr: /--repo PATH, or --instance FILE/ })

  writeFileSync(join(dir, 'mirror/lib/new.py'), 'v = 9\n')
  const local = await tool('grep', '{"pattern": "v ="}', '--repo', join(dir, 'mirror/lib'), '--max-matches', '1')
  t.equal(local.stdout, 'a.py:1:v = 2\n')
  t.match(local.stderr, /1 uncommitted path not seen: the tools read HEAD/)
  t.match(await tool('glob', '{"pattern": "*"}', '--repo', join(dir, 'mirror/lib'), '--max-matches', '1'), {
    stdout: 'a.py\n[1 of 2 files shown]\n',
  })
  t.match(await tool('glob', '{"pattern": "*"}', '--repo', '/'), { status: 1, stderr: /not a git repository/ })
})

t.test('--dry-run makes nothing', async t => {
  const { dir, worktree } = setUp(t)
  const { status, stderr } = await worktree(['--dry-run'], '')
  t.equal(status, 0)
  t.match(stderr, new RegExp(`store: ${dir}/store, 0 clones and 0 worktrees\n.*source: ${dir}/mirror/\\{name\\}`))
  t.notOk(existsSync(join(dir, 'store')))
})

t.test('stopped by a signal, the next run goes on', async t => {
  const { dir, instances, worktree } = setUp(t)
  for (let i = 0; i < 5; i++) instances.commits.push(commitChange(join(dir, 'mirror/lib'), { 'a.py': `v = ${i + 3}\n` }))
  const input = instances.commits.map((commit, i) => `${instances.row(`i${i}`, commit)}\n`).join('')
  const whole = await worktree(['--no-run'], input)
  rmSync(join(dir, 'store'), { recursive: true })
  const { start } = await import('./process.js')
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const { child, done } = start(command, ['--no-run', '--store', join(dir, 'store'), '--source', join(dir, 'mirror/{name}')], { input })
    setTimeout(() => child.kill(signal), 500)
    await done
  }
  t.equal((await worktree(['--no-run'], input)).stdout, whole.stdout)
  t.match(await run(command, ['verify', '--store', join(dir, 'store')]), { status: 0 })
})

function setUp(t: Parameters<typeof scratch>[0]) {
  const { dir } = scratch(t)
  const commits = makeRepository(join(dir, 'mirror/lib'), [
    { 'a.py': 'v = 0\n', 'b/c.txt': 'c\n' },
    { 'a.py': 'v = 1\n' },
    { 'a.py': 'v = 2\n' },
  ])
  const row = (instance_id: string, base_commit: string, more: object = {}) =>
    JSON.stringify({ instance_id, repo: 'acme/lib', base_commit, problem_statement: 'p', ...more })
  const worktree = (args: string[], input: string) =>
    run(command, ['--store', join(dir, 'store'), '--source', join(dir, 'mirror/{name}'), ...args], { input })
  return { dir, instances: { commits, row }, worktree }
}
