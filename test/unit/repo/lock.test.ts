import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stateOf, thisProcess } from '#cg/repo/holder.js'
import { leasesOf, leaseTree } from '#cg/repo/lease.js'
import { withLock } from '#cg/repo/lock.js'
import { scratch } from './make-repository.js'

const dist = join(process.cwd(), 'dist')
t.setTimeout(120_000)

t.test('8 processes count together and none is lost', async t => {
  const dir = scratch(t)
  const counter = join(dir, 'counter')
  writeFileSync(counter, '0')
  const program = `
    import { readFileSync, writeFileSync } from 'node:fs'
    import { withLock } from '${dist}/repo/lock.js'
    for (let i = 0; i < 25; i++) await withLock('${dir}/lock', async () => {
      const n = Number(readFileSync('${counter}'))
      await new Promise(r => setTimeout(r, 1))
      writeFileSync('${counter}', String(n + 1))
    })`
  const children = Array.from({ length: 8 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'ignore', 'inherit'] }),
  )
  const statuses = await Promise.all(children.map(child => new Promise(resolve => child.on('close', resolve))))
  t.strictSame(statuses, Array(8).fill(0))
  t.equal(readFileSync(counter, 'utf8'), '200')
  t.notOk(existsSync(join(dir, 'lock')))
})

t.test('callers in one process take turns', async t => {
  const file = join(scratch(t), 'lock')
  let inside = 0
  const order: number[] = []
  await Promise.all(
    [0, 1, 2, 3].map(n =>
      withLock(file, async () => {
        t.equal(++inside, 1)
        await new Promise(resolve => setTimeout(resolve, 2))
        order.push(n)
        inside--
      }),
    ),
  )
  t.strictSame(order, [0, 1, 2, 3])
})

t.test('work that throws leaves no lock', async t => {
  const file = join(scratch(t), 'lock')
  await t.rejects(
    withLock(file, () => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
  t.equal(await withLock(file, async () => 1), 1)
})

t.test('a dead holder is taken over, by many at once', async t => {
  const file = join(scratch(t), 'lock')
  writeFileSync(file, JSON.stringify({ ...thisProcess(), pid: deadPid(), start: '1' }))
  let inside = 0
  await Promise.all(
    Array.from({ length: 5 }, () =>
      withLock(file, async () => {
        t.equal(++inside, 1)
        await new Promise(resolve => setTimeout(resolve, 1))
        inside--
      }),
    ),
  )
})

t.test('a living holder is waited for', async t => {
  const file = join(scratch(t), 'lock')
  writeFileSync(file, JSON.stringify(thisProcess()))
  const stop = new AbortController()
  setTimeout(() => stop.abort(new Error('enough')), 100)
  await t.rejects(
    withLock(file, async () => {}, stop.signal),
    { message: 'enough' },
  )
  t.ok(existsSync(file))
})

t.test('who is alive', async t => {
  const me = thisProcess()
  t.equal(stateOf(me), 'alive')
  t.equal(stateOf({ ...me, start: '1' }), 'dead', 'the process id was used again')
  t.equal(stateOf({ ...me, pid: deadPid() }), 'dead')
  t.equal(stateOf({ ...me, boot: 'before' }), 'dead', 'the machine was started again')
  t.equal(stateOf({ ...me, host: 'other' }), 'elsewhere')
})

t.test('leases are counted; those of the dead are removed', async t => {
  const tree = join(scratch(t), 'tree')
  const first = leaseTree(tree)
  const second = leaseTree(tree)
  t.equal(leasesOf(tree).length, 1)
  first()
  first()
  t.equal(leasesOf(tree).length, 1, 'releasing twice counts once')
  second()
  t.equal(leasesOf(tree).length, 0)

  const dead = `${tree}.lease.x.1`
  writeFileSync(dead, JSON.stringify({ ...thisProcess(), pid: deadPid() }))
  writeFileSync(`${tree}.lease.y.2`, JSON.stringify({ ...thisProcess(), host: 'other' }))
  t.match(leasesOf(tree), [{ host: 'other' }], 'another host may still use it')
  t.notOk(existsSync(dead))
})

function deadPid(): number {
  return spawnSync('true').pid
}
