import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { thisProcess } from '#cg/repo/holder.js'
import { listTrees } from '#cg/repo/list.js'
import { localRepository } from '#cg/repo/local.js'
import { prepare } from '#cg/repo/prepare.js'
import { pruneTree } from '#cg/repo/prune.js'
import { verifyTree } from '#cg/repo/verify.js'
import { git, makeRepository, options, scratch } from './make-repository.js'

const dist = join(process.cwd(), 'dist')

// Eight processes on a machine that is busy with other tests.
t.setTimeout(180_000)

t.test('8 processes prepare the same commits of one repository at once', async t => {
  const dir = scratch(t)
  const commits = makeRepository(
    join(dir, 'src'),
    Array.from({ length: 8 }, (_, i) => Object.fromEntries(Array.from({ length: 20 }, (_, f) => [`d${f % 4}/f${f}`, `${i} ${f}\n`]))),
  )
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, n) => prepareElsewhere(dir, [...commits.slice(n), ...commits.slice(0, n)])),
  )
  t.strictSame(
    results.map(({ status, said }) => [status, said]),
    Array(8).fill([0, '']),
  )
  const made = results.flatMap(({ made }) => made)
  t.equal(made.length, 8, 'each was made by one of them')
  t.strictSame([...made].sort(), [...commits].sort())

  const trees = listTrees(join(dir, 'store'))
  t.equal(trees.length, 8)
  for (const tree of trees) t.strictSame(await verifyTree(tree), [])
  t.equal(git(join(dir, 'store/repos/acme+lib.git'), 'worktree', 'list').trim().split('\n').length, 9)
  t.strictSame(
    readdirSync(join(dir, 'store/trees/acme+lib')).filter(name => !/^[0-9a-f]{40}(?:\.ready)?$/.test(name)),
    [],
    'no locks, leases or leftovers stay',
  )
})

t.test('killed at any moment, the next one makes it whole', async t => {
  const dir = scratch(t)
  const files = Object.fromEntries(Array.from({ length: 300 }, (_, f) => [`d${f % 30}/f${f}`, `${f}\n`.repeat(50)]))
  const [commit] = makeRepository(join(dir, 'src'), [files]) as [string]
  for (const after of [100, 200, 300]) {
    rmSync(join(dir, 'store'), { recursive: true, force: true })
    await prepareElsewhere(dir, [commit], after)
    const { worktree, release } = await prepare('acme/lib', commit, options(join(dir, 'store'), join(dir, 'src')))
    release()
    const [tree] = listTrees(join(dir, 'store'))
    t.equal(tree?.path, worktree.path)
    t.strictSame(await verifyTree(tree!), [], `killed after ${after} ms`)
  }
})

const wrecks: [name: string, wreck: (path: string, bare: string, commit: string) => void][] = [
  ['files without a mark', path => rmSync(`${path}.ready`)],
  [
    'half the files, and the index locked',
    (path, bare, commit) => {
      rmSync(`${path}.ready`)
      rmSync(join(path, 'a'))
      writeFileSync(join(bare, 'worktrees', commit, 'index.lock'), '')
    },
  ],
  ['an entry of git without files', path => rmSync(path, { recursive: true })],
  [
    'an entry that git was making when it was killed',
    (path, bare, commit) => {
      rmSync(`${path}.ready`)
      rmSync(path, { recursive: true })
      writeFileSync(join(bare, 'worktrees', commit, 'locked'), 'initializing')
    },
  ],
  [
    'files without an entry of git',
    (path, bare, commit) => {
      rmSync(`${path}.ready`)
      rmSync(join(bare, 'worktrees', commit), { recursive: true })
    },
  ],
  [
    'an entry that is half made',
    (path, bare, commit) => {
      rmSync(`${path}.ready`)
      rmSync(join(bare, 'worktrees', commit, 'commondir'))
    },
  ],
  [
    'a locked repository whose holder is dead',
    (path, bare) => {
      rmSync(`${path}.ready`)
      for (const file of [`${bare.slice(0, -4)}.lock`, `${path}.lock`])
        writeFileSync(file, JSON.stringify({ ...thisProcess(), start: '1' }))
    },
  ],
]
for (const [name, wreck] of wrecks)
  t.test(`${name}: made again`, async t => {
    const dir = scratch(t)
    const [commit] = makeRepository(join(dir, 'src'), [{ a: '1', b: '2' }]) as [string]
    const at = options(join(dir, 'store'), join(dir, 'src'))
    const { worktree, release } = await prepare('acme/lib', commit, at)
    release()
    wreck(worktree.path!, worktree.bare!, commit)
    t.match(await prepare('acme/lib', commit, at), { cached: false, worktree })
    t.strictSame(await verifyTree(listTrees(join(dir, 'store'))[0]!), [])
  })

t.test('an unfinished clone is not taken for one', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  mkdirSync(join(dir, 'store/repos/acme+lib.git.new/objects'), { recursive: true })
  t.match(await prepare('acme/lib', commit, options(join(dir, 'store'), join(dir, 'src'))), { cached: false })
})

t.test('verify finds what is wrong', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1', b: '2', c: '3' }]) as [string]
  const { worktree } = await prepare('acme/lib', commit, options(join(dir, 'store'), join(dir, 'src')))
  const path = worktree.path!
  const problems = () => verifyTree(listTrees(join(dir, 'store'))[0]!)
  t.strictSame(await problems(), [])
  writeFileSync(join(path, 'new'), '')
  t.strictSame(await problems(), [], 'no tool sees files that are not tracked')
  appendFileSync(join(path, 'a'), 'x')
  rmSync(join(path, 'b'))
  rmSync(join(path, 'c'))
  mkdirSync(join(path, 'c'))
  t.strictSame(await problems(), ['a is changed', 'b is missing', 'c is not a regular file'])
  rmSync(`${path}.ready`)
  t.strictSame(await problems(), ['its checkout was interrupted'])
})

t.test('prune leaves alone what is in use', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const at = options(join(dir, 'store'), join(dir, 'src'))
  const { worktree, release } = await prepare('acme/lib', commit, at)
  const tree = () => listTrees(join(dir, 'store'))[0]!
  t.match(tree(), { commit, ready: { files: 1, bytes: 1 }, leases: [{ pid: process.pid }] })
  t.equal(await pruneTree(tree()), false)
  t.strictSame(await verifyTree(tree()), [], 'and as it was')

  release()
  t.equal(await pruneTree(tree()), true)
  t.strictSame(listTrees(join(dir, 'store')), [])
  t.notOk(existsSync(worktree.path!))
  t.equal(git(worktree.bare!, 'worktree', 'list').trim().split('\n').length, 1)
  t.match(await prepare('acme/lib', commit, options(join(dir, 'store'), '/nowhere')), { cached: false }, 'it comes back from the clone')
})

t.test('the next process to come removes leases of dead ones, and no other', async t => {
  const dir = scratch(t)
  const [first, second] = makeRepository(join(dir, 'src'), [{ a: '1' }, { a: '2' }]) as [string, string]
  const { worktree, release } = await prepare('acme/lib', first, options(join(dir, 'store'), join(dir, 'src')))
  const dead = `${worktree.path}.lease.here.1`
  writeFileSync(dead, JSON.stringify({ ...thisProcess(), start: '1' }))
  const elsewhere = `${worktree.path}.lease.there.1`
  writeFileSync(elsewhere, JSON.stringify({ ...thisProcess(), host: 'there' }))
  await prepareElsewhere(dir, [second])
  t.notOk(existsSync(dead))
  t.ok(existsSync(elsewhere))
  t.equal(listTrees(join(dir, 'store')).find(({ commit }) => commit === first)?.leases.length, 2, 'ours and the one elsewhere')
  release()
})

t.test('prune and use at the same time: nobody loses files under his feet', async t => {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const at = options(join(dir, 'store'), join(dir, 'src'))
  for (let i = 0; i < 10; i++) {
    const before = await prepare('acme/lib', commit, at)
    before.release()
    const [listed] = listTrees(join(dir, 'store'))
    const [{ worktree, release }] = await Promise.all([prepare('acme/lib', commit, at), pruneTree(listed!)])
    t.ok(existsSync(join(worktree.path!, 'a')))
    release()
  }
})

t.test('a repository of the user: HEAD, and what is not committed is counted', async t => {
  const dir = scratch(t)
  const [, head] = makeRepository(join(dir, 'src'), [{ a: '1' }, { a: '2', 'b/c': '3' }])
  const store = join(dir, 'store')
  t.match(await localRepository(join(dir, 'src/b'), store), { repo: 'src', commit: head, uncommitted: 0 })
  appendFileSync(join(dir, 'src/a'), 'x')
  writeFileSync(join(dir, 'src/new'), '')
  // Staged or not is the same to us: neither is in HEAD.
  git(join(dir, 'src'), 'add', 'a')
  utimesSync(join(dir, 'src/b/c'), 1, 1)
  t.match(await localRepository(join(dir, 'src'), store), { commit: head, uncommitted: 2 })
  t.match(await localRepository(join(dir, 'src/.git'), store), { commit: head })
  t.equal(listTrees(store).length, 1, 'one clone, however it is named')

  makeRepository(join(dir, 'empty'), [])
  await t.rejects(localRepository(join(dir, 'empty'), store), { code: 'E_REPOSITORY', message: /it has no commit yet/ })
  await t.rejects(localRepository(dir, store), { code: 'E_REPOSITORY', message: /not a git repository/ })
  await t.rejects(localRepository(join(dir, 'nowhere'), store), { code: 'E_REPOSITORY' })
})

/** Another process that prepares commits; killed after a while if that is given. */
async function prepareElsewhere(
  dir: string,
  commits: string[],
  killAfter?: number,
): Promise<{ status: unknown; said: string; made: string[] }> {
  const program = `
    import { prepare } from '${dist}/repo/prepare.js'
    const options = { store: '${dir}/store', source: '${dir}/src', checkout: true, timeoutMs: 60000, gitConfig: false }
    await Promise.all(${JSON.stringify(commits)}.map(async commit => {
      const { cached } = await prepare('acme/lib', commit, options)
      if (!cached) console.log(commit)
    }))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] })
  const timer = killAfter === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfter)
  const [out, said] = ['', '']
  const result = { status: undefined as unknown, said, out }
  child.stdout.on('data', data => (result.out += data))
  child.stderr.on('data', data => (result.said += data))
  result.status = await new Promise(resolve => child.on('close', resolve))
  clearTimeout(timer)
  return { status: result.status, said: result.said, made: result.out.split('\n').filter(Boolean) }
}
