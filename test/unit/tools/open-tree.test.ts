import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { leasesOf } from '#cg/repo/lease.js'
import { listTrees } from '#cg/repo/list.js'
import { prepare } from '#cg/repo/prepare.js'
import { pruneTree } from '#cg/repo/prune.js'
import { openTree } from '#cg/tools/open-tree.js'
import { repositoryTree } from '#cg/tools/repository-tree.js'
import { git, makeRepository, options, scratch } from '../repo/make-repository.js'

t.setTimeout(60_000)

t.test('a prepared instance opens once and is leased', async t => {
  const { worktree } = await prepared(t)
  const tree = await openTree({ instance_id: 'i', worktree })
  t.strictSame(await tree.list(), ['a'])
  t.equal(tree.id, worktree.tree)
  t.equal(await openTree({ instance_id: 'j', worktree }), tree)
  t.match(leasesOf(worktree.path!), [{ pid: process.pid }])
})

t.test('files that are not there yet, or not any more, are written', async t => {
  const { worktree, store } = await prepared(t, false)
  t.equal(worktree.path, undefined)
  t.strictSame(await (await openTree({ instance_id: 'i', worktree })).list(), ['a'])

  const other = await prepared(t)
  t.equal(await pruneTree(listTrees(other.store)[0]!), true)
  t.strictSame(await (await openTree({ instance_id: 'i', worktree: other.worktree })).list(), ['a'])
  t.equal(listTrees(store).length, 1)
})

t.test('what a record says is not believed', async t => {
  const { worktree, dir } = await prepared(t)
  const open = (change: object) => openTree({ instance_id: 'i', worktree: { ...worktree, ...change } })
  await t.rejects(openTree({ instance_id: 'i' }), {
    code: 'E_NO_WORKTREE',
    message: 'i has no worktree: put cg-worktree before this command',
  })
  await t.rejects(open({ bare: join(dir, 'nowhere.git') }), { code: 'E_NO_WORKTREE', message: /run cg-worktree again/ })
  await t.rejects(open({ commit: 'f'.repeat(40) }), { code: 'E_NO_WORKTREE' })
  await t.rejects(open({ commit: '--all' }), { code: 'E_COMMIT' })

  // A repository that somebody prepared to look like a clone of ours, with a program in its configuration.
  git(dir, 'clone', '-q', '--bare', join(dir, 'src'), join(dir, 'evil/repos/x.git'))
  writeFileSync(join(dir, 'evil/repos/x.git/cg.json'), '{}')
  git(join(dir, 'evil/repos/x.git'), 'config', 'core.fsmonitor', 'touch ran')
  await t.rejects(open({ bare: join(dir, 'evil/repos/x.git') }), { code: 'E_STORE' })
})

t.test('another tree than the commit has is refused', async t => {
  const { worktree } = await prepared(t)
  await t.rejects(openTree({ instance_id: 'i', worktree: { ...worktree, tree: 'e'.repeat(40) } }), { code: 'E_WORKTREE' })
})

t.test('a damaged worktree is refused, and can be opened once it is whole', async t => {
  const { worktree } = await prepared(t)
  writeFileSync(join(worktree.path!, 'a'), 'changed')
  await t.rejects(openTree({ instance_id: 'i', worktree }), { code: 'E_WORKTREE', message: /cg-worktree verify --fix/ })
  writeFileSync(join(worktree.path!, 'a'), '1')
  t.strictSame(await (await openTree({ instance_id: 'i', worktree })).list(), ['a'])
})

t.test('those who ask at the same time share what is opened, but no failure', async t => {
  const { worktree, dir } = await prepared(t)
  const gone = { ...worktree, bare: join(dir, 'nowhere.git') }
  const failed = await Promise.all(['i', 'j', 'k'].map(instance_id => openTree({ instance_id, worktree: gone }).catch(error => error)))
  t.match(
    failed.map(error => error.message),
    [/^i: /, /^j: /, /^k: /],
    'each is told of its own instance',
  )

  const stop = new AbortController()
  const first = openTree({ instance_id: 'i', worktree }, stop.signal)
  const [second, third] = [openTree({ instance_id: 'j', worktree }), openTree({ instance_id: 'k', worktree })]
  stop.abort(new Error('gave up'))
  await t.rejects(first, { message: 'gave up' })
  t.strictSame(await (await second).list(), ['a'], 'goes on without the one who began')
  t.equal(await third, await second)
})

t.test('the tree of a local repository is its HEAD', async t => {
  const dir = scratch(t)
  const [, head] = makeRepository(join(dir, 'src'), [{ a: '1' }, { a: '2', b: '3' }])
  writeFileSync(join(dir, 'src/a'), 'not committed')
  writeFileSync(join(dir, 'src/c'), 'not tracked')
  const { tree, commit, uncommitted, worktree } = await repositoryTree(join(dir, 'src'), join(dir, 'store'))
  t.equal(commit, head)
  t.equal(uncommitted, 2)
  t.strictSame(await tree.list(), ['a', 'b'])
  t.match(await tree.read('a'), { kind: 'file', bytes: Buffer.from('2') })
  rmSync(join(dir, 'src'), { recursive: true })
  t.equal((await openTree({ instance_id: 'i', worktree })).id, tree.id, 'it is an instance like any other')
})

async function prepared(t: { teardown(work: () => void): unknown }, checkout = true) {
  const dir = scratch(t)
  const store = join(dir, 'store')
  const [commit] = makeRepository(join(dir, 'src'), [{ a: '1' }]) as [string]
  const { worktree, release } = await prepare('acme/lib', commit, { ...options(store, join(dir, 'src')), checkout })
  release()
  return { worktree, store, dir }
}
