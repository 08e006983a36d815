import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { thisProcess } from '#cg/repo/holder.js'
import { leasesOf } from '#cg/repo/lease.js'
import { listTrees } from '#cg/repo/list.js'
import { withLock } from '#cg/repo/lock.js'
import { prepare } from '#cg/repo/prepare.js'
import { placeOf } from '#cg/repo/store.js'
import { sweepStore } from '#cg/repo/sweep.js'
import { verifyTree } from '#cg/repo/verify.js'
import { openTree } from '#cg/tools/open-tree.js'
import { run } from '../../pipeline/process.js'
import { git, makeRepository, options, scratch } from './make-repository.js'

t.setTimeout(120_000)

const dead = spawnSync('true').pid
const leftBehind = (name: string) => `${name}.${hostname()}.${dead}.0.tmp`

/** A prepared commit, and the same again. */
async function prepared(t: Test) {
  const dir = scratch(t)
  const [commit] = makeRepository(join(dir, 'src'), [{ 'a.py': 'v = 0\n', 'lib/b.py': 'v = 1\n' }]) as [string]
  const store = join(dir, 'store')
  const again = async () => {
    const made = await prepare('acme/lib', commit, options(store, `file://${join(dir, 'src')}`))
    made.release()
    return made
  }
  const { worktree } = await again()
  return { dir, store, commit, again, path: worktree.path!, place: placeOf(store, 'acme/lib'), worktree }
}

t.test('a power failure leaves an empty lock: its holder is dead', async t => {
  const { dir } = await prepared(t)
  const file = join(dir, 'lock')
  writeFileSync(file, '')
  t.equal(await withLock(file, async () => 'done'), 'done')
  writeFileSync(file, '')
  writeFileSync(`${file}.break`, '{"pid":')
  t.equal(await withLock(file, async () => 'done'), 'done', 'and an empty guard too')
})

t.test('an empty ready mark is none, an empty lease counts for nothing', async t => {
  const { path, again, store } = await prepared(t)
  writeFileSync(`${path}.ready`, '')
  t.strictSame(
    listTrees(store).map(({ ready }) => ready),
    [undefined],
  )
  t.equal((await again()).cached, false, 'made again')
  t.strictSame(await verifyTree(listTrees(store)[0]!), [])
  writeFileSync(`${path}.lease.x.1`, '')
  t.strictSame(leasesOf(path), [])
  t.notOk(existsSync(`${path}.lease.x.1`))
})

t.test('a worktree whose directory vanished', async t => {
  const { path, again, worktree, store } = await prepared(t)
  rmSync(path, { recursive: true })
  t.equal((await verifyTree(listTrees(store)[0]!)).length, 2, 'verify says so')
  t.equal((await again()).cached, false, 'cg-worktree makes it again')
  rmSync(path, { recursive: true })
  const tree = await openTree({ instance_id: 'i', worktree })
  t.match(await tree.read('a.py'), { kind: 'file' }, 'and so does who reads it first')

  rmSync(path, { recursive: true })
  const query = { pattern: 'v = .', context: 0, limit: 9, timeoutMs: 60_000, ignoreCase: false }
  await t.rejects(tree.read('lib/b.py'), { code: 'E_WORKTREE', message: /lib\/b.py is not the file of the commit: repair it/ })
  await t.rejects(tree.grep(query), { code: 'E_WORKTREE', message: /repair it with cg-worktree verify --fix/ }, 'vanished under a reader')
})

t.test('a pack that was cut, or has other bytes, is said, and what can be done', async t => {
  const { place, again, path, store } = await prepared(t)
  const mark = readFileSync(`${path}.ready`)
  const packs = join(place.bare, 'objects/pack')
  const pack = join(packs, readdirSync(packs).find(name => name.endsWith('.pack'))!)
  const changed = readFileSync(pack)
  for (let at = 14; at < changed.length - 20; at += 7) changed[at]! ^= 0x55
  chmodSync(pack, 0o644)
  for (const bytes of [changed, changed.subarray(0, 100)]) {
    writeFileSync(pack, bytes)
    const problems = await verifyTree(listTrees(store)[0]!)
    t.match(problems[0], /^its commit cannot be read \(.*\): remove .*acme\+lib\.git and run cg-worktree again$/)
    const fix = await run('bin/cg-worktree', ['verify', '--fix', '--store', store])
    t.equal(fix.status, 1)
    t.match(fix.stderr, /1 of 1 worktree damaged: in use, or the clone is gone or damaged: run cg-worktree again/)
    t.ok(existsSync(join(path, 'a.py')), 'the files that are there stay')
    rmSync(`${path}.ready`)
    const advice = /acme\+lib\.git: git failed \(.*\): if it is damaged, remove it and run cg-worktree again/
    await t.rejects(again(), { code: 'E_STORE', message: advice })
    writeFileSync(`${path}.ready`, mark)
  }
  rmSync(place.bare, { recursive: true })
  rmSync(`${path}.ready`)
  t.equal((await again()).cached, false, 'as the message says')
  t.strictSame(await verifyTree(listTrees(store)[0]!), [])
})

t.test('what killed processes left is swept up; what others do is not touched', async t => {
  const { store, path, place, again } = await prepared(t)
  const files = [leftBehind(`${path}.ready`), leftBehind(`${path}.lock`), leftBehind(place.lock), `${path}.lease.${hostname()}.${dead}`]
  for (const file of files) writeFileSync(file, JSON.stringify({ ...thisProcess(), pid: dead }))
  const directories = [leftBehind(`${path}.gone`), join(store, 'repos/acme+other.git.new')]
  for (const directory of directories) mkdirSync(join(directory, 'some/files'), { recursive: true })

  const living = join(store, 'repos/acme+busy.git.new')
  mkdirSync(living)
  writeFileSync(join(store, 'repos/acme+busy.lock'), JSON.stringify(thisProcess()))
  const elsewhere = `${path}.ready.another-host.${dead}.0.tmp`
  writeFileSync(elsewhere, '')
  const own = `${path}.ready.${hostname()}.${process.pid}.0.tmp`
  writeFileSync(own, '')

  await sweepStore(store)
  for (const gone of [...files, ...directories]) t.notOk(existsSync(gone), gone)
  for (const kept of [living, elsewhere, own]) t.ok(existsSync(kept), kept)
  t.equal((await again()).cached, true, 'the worktree is as it was')
})

t.test('a store that is not there yet has nothing to sweep', async t => {
  const store = join(scratch(t), 'none')
  await sweepStore(store)
  t.notOk(existsSync(store))
})

t.test('locks and received objects that a killed fetch left do not stop the next one, and go', async t => {
  const { dir, place, store } = await prepared(t)
  const source = join(dir, 'src')
  git(source, 'checkout', '-q', '-b', 'later')
  const left = [
    'packed-refs.lock',
    'refs/heads/later.lock',
    'objects/pack/tmp_pack_abc',
    'objects/tmp_objdir-incoming-x/y',
    'objects/ab/tmp_obj_x',
  ]
  for (const name of left) {
    mkdirSync(join(place.bare, name, '..'), { recursive: true })
    writeFileSync(join(place.bare, name), 'x')
  }
  git(source, 'commit', '-q', '--allow-empty', '-m', 'more')
  const made = await prepare('acme/lib', git(source, 'rev-parse', 'HEAD').trim(), options(store, `file://${source}`))
  made.release()
  for (const name of left) t.notOk(existsSync(join(place.bare, name)), name)
})

t.test('a clock that was set back does not keep a worktree for years, one that ran ahead does not stop its use', async t => {
  const { path, again, store } = await prepared(t)
  const ahead = Date.now() / 1000 + 10 * 365 * 86_400
  utimesSync(`${path}.ready`, ahead, ahead)
  t.equal((await again()).cached, true)
  t.ok(Math.abs(listTrees(store)[0]!.lastUse.getTime() - Date.now()) < 3_600_000, 'the use is noted as of now')
})
