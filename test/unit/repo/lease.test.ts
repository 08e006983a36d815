import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { temporaryName } from '#cg/record/temporary.js'
import { thisProcess } from '#cg/repo/holder.js'
import { leasesOf, leaseTree } from '#cg/repo/lease.js'
import { sweepStore } from '#cg/repo/sweep.js'

t.test('leases of dead processes go; one that a process is just writing stays', async t => {
  const store = t.testdir()
  const trees = join(store, 'trees', 'o+r')
  mkdirSync(trees, { recursive: true })
  const path = join(trees, 'a'.repeat(40))
  const dead = `${path}.lease.${hostname()}.999999`
  // as the name of another process's lease, of which not a byte is there yet
  const begun = temporaryName(`${path}.lease.${hostname()}.${process.ppid}`)
  const begin = () => {
    writeFileSync(dead, JSON.stringify({ ...thisProcess(), pid: 999_999, start: '1' }))
    writeFileSync(begun, '')
  }
  for (const look of [() => leaseTree(path), () => leasesOf(path), () => sweepStore(store)]) {
    begin()
    await look()
    t.notOk(existsSync(dead))
    t.ok(existsSync(begun))
  }
  t.same(leasesOf(path).map(({ pid }) => pid), [process.pid]) // biome-ignore format: one thought
})
