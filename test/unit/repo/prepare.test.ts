import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { fullCommit } from '#cg/repo/commit.js'
import { infoAttributes, ourConfig } from '#cg/repo/git-config.js'
import { prepare } from '#cg/repo/prepare.js'
import { commitChange, git, makeRepository, options, scratch } from './make-repository.js'

t.setTimeout(120_000)

t.test('a commit becomes a directory with its files; the second time nothing is done', async t => {
  const dir = scratch(t)
  const [first, second] = makeRepository(join(dir, 'src'), [{ 'a.py': 'one\n', 'b/c.py': 'x\n' }, { 'a.py': 'two\n' }]) as [string, string]
  const made = await prepare('acme/lib', first, options(join(dir, 'store'), join(dir, 'src')))
  const { worktree } = made
  t.match(made, {
    cached: false,
    worktree: { commit: first, bare: join(dir, 'store/repos/acme+lib.git'), path: join(dir, 'store/trees/acme+lib', first) },
  })
  t.equal(worktree.tree, git(join(dir, 'src'), 'rev-parse', `${first}^{tree}`).trim())
  t.equal(readFileSync(join(worktree.path!, 'a.py'), 'utf8'), 'one\n')
  t.equal(git(worktree.path!, 'status', '--porcelain'), '')

  const again = await prepare('acme/lib', first.toUpperCase(), options(join(dir, 'store'), '/nowhere'))
  t.match(again, { cached: true, worktree }, 'not even the source is needed')
  t.match(await prepare('acme/lib', second, options(join(dir, 'store'), '/nowhere')), { cached: false }, 'its objects are in the clone')
})

t.test('the clone is objects and refs under our own configuration', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  git(join(dir, 'src'), 'config', 'core.fsmonitor', 'evil')
  const { worktree } = await prepare('acme/lib', commit, options(join(dir, 'store'), `file://${dir}/src`))
  t.equal(readFileSync(join(worktree.bare!, 'config'), 'utf8'), ourConfig('sha1'))
  t.equal(readFileSync(join(worktree.bare!, 'info/attributes'), 'utf8'), infoAttributes)
  t.notOk(existsSync(join(worktree.bare!, 'hooks')))

  writeFileSync(join(worktree.bare!, 'config'), `${ourConfig('sha1')}[core]\n\tfsmonitor = evil\n`)
  await t.rejects(
    prepare('acme/lib', commit, options(join(dir, 'store'))),
    { code: 'E_STORE' },
    'a configuration that is not ours is not used',
  )
})

t.test('without checkout there is no directory', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const { worktree } = await prepare('acme/lib', commit, { ...options(join(dir, 'store'), join(dir, 'src')), checkout: false })
  t.equal(worktree.path, undefined)
  t.notOk(existsSync(join(dir, 'store/trees')))
})

t.test('a commit that came after the clone is fetched', async t => {
  const dir = scratch(t)
  const [first] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const at = options(join(dir, 'store'), `${dir}/src`)
  await prepare('acme/lib', first, at)
  const second = commitChange(join(dir, 'src'), { a: '2' })
  const { worktree } = await prepare('acme/lib', second, at)
  t.equal(readFileSync(join(worktree.path!, 'a'), 'utf8'), '2')
})

t.test('a source that cannot give one commit is asked for all', async t => {
  const dir = scratch(t)
  const [first] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  // A directory over plain HTTP: git calls it dumb, and asks it for refs only.
  const server = createHttp((request, response) => {
    const file = join(dir, decodeURIComponent(request.url!.split('?')[0]!))
    if (!existsSync(file) || statSync(file).isDirectory()) response.writeHead(404).end()
    else response.end(readFileSync(file))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  withEnvironment(t, { NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' })
  git(join(dir, 'src'), 'update-server-info')
  const at = options(join(dir, 'store'), `http://127.0.0.1:${(server.address() as AddressInfo).port}/{name}/.git`)
  await prepare('acme/src', first, at)
  const second = commitChange(join(dir, 'src'), { a: '2' })
  commitChange(join(dir, 'src'), { a: '3' })
  git(join(dir, 'src'), 'update-server-info')

  // and a fetch that was killed is no hindrance
  const bare = join(dir, 'store/repos/acme+src.git')
  const left = ['refs/heads/main.lock', 'packed-refs.lock', 'objects/pack/tmp_pack_1', 'objects/aa/tmp_obj_1'].map(name => join(bare, name))
  mkdirSync(join(bare, 'objects/aa'), { recursive: true })
  for (const name of left) writeFileSync(name, '')
  const { worktree } = await prepare('acme/src', second, at)
  t.equal(readFileSync(join(worktree.path!, 'a'), 'utf8'), '2')
  t.same(left.filter(existsSync), [])
})

t.test('sha256 repositories', async t => {
  const dir = scratch(t)
  mkdirSync(join(dir, 'src'))
  git(join(dir, 'src'), 'init', '-q', '--object-format=sha256')
  const commit = commitChange(join(dir, 'src'), { a: '1' })
  t.equal(commit.length, 64)
  const { worktree } = await prepare('acme/lib', commit, options(join(dir, 'store'), `${dir}/src`))
  t.equal(readFileSync(join(worktree.path!, 'a'), 'utf8'), '1')
})

t.test('what is wrong is said, with the repository and what to do', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  git(join(dir, 'src'), 'tag', '-a', '-m', 'x', 'v1')
  const tag = git(join(dir, 'src'), 'rev-parse', 'v1').trim()
  mkdirSync(join(dir, 'empty'))
  const at = options(join(dir, 'store'), join(dir, '{name}'))
  const missing = 'f'.repeat(40)
  const faults: [name: string, repo: string, commit: string, fault: { code: string; message?: string | RegExp }][] = [
    ['no such path', 'acme/gone', commit, { code: 'E_SOURCE', message: `acme/gone: there is no ${dir}/gone: check --source` }],
    [
      'no repository there',
      'acme/empty',
      commit,
      { code: 'E_CLONE', message: /^acme\/empty: cannot read .*empty: repository .* does not exist: check --source$/ },
    ],
    [
      'commit not there',
      'acme/src',
      missing,
      {
        code: 'E_COMMIT_MISSING',
        message: `acme/src has no commit ${missing}: ${dir}/src does not offer it; check base_commit, or give a --source that has it`,
      },
    ],
    [
      'a tag is no commit',
      'acme/src',
      tag,
      { code: 'E_COMMIT_MISSING', message: `acme/src: ${tag} is a tag, not a commit: check base_commit` },
    ],
    ['short id', 'acme/src', commit.slice(0, 8), { code: 'E_COMMIT', message: /shortened: write all 40 digits/ }],
    ['branch name', 'acme/src', 'main', { code: 'E_COMMIT', message: /write the 40 hex digits/ }],
    ['an option as commit', 'acme/src', '--all', { code: 'E_COMMIT' }],
    ['a path as repository', '../src', commit, { code: 'E_REPO' }],
    ['an option as repository', '-u/x', commit, { code: 'E_REPO' }],
  ]
  for (const [name, repo, commit, fault] of faults) await t.rejects(prepare(repo, commit, at), fault as { code: string }, name)
})

t.test('a clone that does not end is stopped', async t => {
  const dir = scratch(t)
  // An ssh that is connected to nothing: git waits for its first words.
  fakeSsh(t, dir, 'exec cat > /dev/null')
  const start = performance.now()
  await t.rejects(prepare('acme/lib', 'a'.repeat(40), { ...options(join(dir, 'store'), 'git@host:{repo}'), timeoutMs: 400 }), {
    code: 'E_CLONE_TIMEOUT',
    message: 'acme/lib: git@host:acme/lib took longer than 0.4 s: raise --clone-timeout, or clone it yourself and give --source PATH',
    retry: true,
  })
  t.ok(performance.now() - start < 10_000)
})

t.test('a clone whose git was killed is none, whole as it may look', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const real = execFileSync('/bin/sh', ['-c', 'command -v git']).toString().trim()
  const at = options(join(dir, 'store'), join(dir, 'src'))
  for (const [how, message] of [
    ['kill -KILL $$', /git was killed/],
    ['exit 9', /git ended with status 9 and said nothing/],
  ] as const) {
    program(dir, 'git', `case " $* " in *" clone "*) ${real} "$@"; ${how};; *) exec ${real} "$@";; esac`)
    withEnvironment(t, { PATH: `${dir}/bin:${process.env.PATH}` })
    await t.rejects(prepare('acme/lib', commit, at), { code: 'E_CLONE', message })
  }
  program(dir, 'git', `exec ${real} "$@"`)
  t.match(await prepare('acme/lib', commit, at), { cached: false })
})

t.test('ssh, with the agent and home directory of the user, and without questions', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  fakeSsh(
    t,
    dir,
    `echo "$@ home=$HOME agent=$SSH_AUTH_SOCK" > ${dir}/said; eval "set -- $(eval echo \\$$#)"; exec git-upload-pack ${dir}/src`,
  )
  withEnvironment(t, { HOME: '/home/me', SSH_AUTH_SOCK: '/run/agent' })
  const { worktree } = await prepare('acme/lib', commit, options(join(dir, 'store'), 'git@host:{repo}.git'))
  t.equal(readFileSync(join(worktree.path!, 'a'), 'utf8'), '1')
  t.match(readFileSync(join(dir, 'said'), 'utf8'), /BatchMode=yes.*home=\/home\/me agent=\/run\/agent/)
})

t.test('HTTPS goes through the proxy, and nobody is asked for a password', async t => {
  const dir = scratch(t)
  const asked: string[] = []
  const proxy = createTcp(socket =>
    socket
      .on('error', () => {})
      .once('data', data => {
        asked.push(data.toString().split('\r\n')[0]!)
        socket.end('HTTP/1.1 502 no\r\n\r\n')
      }),
  )
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  withEnvironment(t, { HTTPS_PROXY: address, https_proxy: address, NO_PROXY: '', no_proxy: '' })
  await t.rejects(prepare('acme/lib', 'a'.repeat(40), options(join(dir, 'store'))), {
    code: 'E_CLONE',
    message: /^acme\/lib: cannot read https:\/\/github.com\/acme\/lib.git: .*--source$/,
  })
  t.strictSame([...new Set(asked)], ['CONNECT github.com:443 HTTP/1.1'])
})

t.test("with --git-config the user's configuration counts, without it not", async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  mkdirSync(join(dir, 'home'))
  writeFileSync(join(dir, 'home/.gitconfig'), `[url "${dir}/"]\n\tinsteadOf = https://short.example/\n`)
  withEnvironment(t, { HOME: join(dir, 'home') })
  const at = { ...options(join(dir, 'store'), 'https://short.example/src'), timeoutMs: 20_000 }
  withEnvironment(t, { HTTPS_PROXY: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9' })
  await t.rejects(prepare('acme/lib', commit, at), { code: 'E_CLONE', message: /--git-config/ })
  await t.resolves(prepare('acme/lib', commit, { ...at, gitConfig: true }))
})

t.test('a use is noted', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const at = options(join(dir, 'store'), join(dir, 'src'))
  const { worktree } = await prepare('acme/lib', commit, at)
  utimesSync(`${worktree.path}.ready`, 1000, 1000)
  await prepare('acme/lib', commit, at)
  t.ok(statSync(`${worktree.path}.ready`).mtimeMs > 1_000_000_000)
})

t.test('full ids', async t => {
  t.equal(fullCommit('A'.repeat(64)), 'a'.repeat(64))
  t.throws(() => fullCommit('a'.repeat(41)), { code: 'E_COMMIT' })
  t.throws(() => fullCommit(`${'a'.repeat(40)}\n`), { code: 'E_COMMIT' })
})

function withEnvironment(t: { teardown(work: () => void): unknown }, values: Record<string, string>): void {
  const before = Object.fromEntries(Object.keys(values).map(name => [name, process.env[name]]))
  Object.assign(process.env, values)
  t.teardown(() => {
    for (const [name, value] of Object.entries(before))
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
  })
}

function fakeSsh(t: { teardown(work: () => void): unknown }, dir: string, script: string): void {
  program(dir, 'ssh', script)
  withEnvironment(t, { PATH: `${dir}/bin:${process.env.PATH}` })
}

function program(dir: string, name: string, script: string): void {
  mkdirSync(join(dir, 'bin'), { recursive: true })
  writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}
