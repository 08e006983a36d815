import { join } from 'node:path'
import t from 'tap'
import { noFailingDisk } from '../faults/disk.js'
import { everyChange } from '../faults/every-change.js'
import { cacheOn, cloneOn, trainOn } from '../faults/full-disk.js'
import { noSmallDisk } from '../faults/small-disk.js'
import { preparing, redirecting, scoring, searching } from '../faults/streaming.js'
import { scratch } from '../pipeline/process.js'

t.setTimeout(7_200_000)

t.test('outputs, cache, store and leases, failing at every change', { skip: noFailingDisk }, async t => {
  const all = (changes: Parameters<Parameters<typeof everyChange>[2]>[0]) => changes
  await everyChange(t, scoring, all, ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'])
  await everyChange(t, redirecting, all, ['ENOSPC', 'EDQUOT', 'EIO'])
  await everyChange(t, preparing(join(scratch(t).dir, 'mirror')), all, ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'])
  await everyChange(t, searching(join(scratch(t).dir, 'mirror')), all, ['ENOSPC', 'EROFS'])
})

t.test('clones, checkouts, caches and run directories on disks of many sizes', { skip: noSmallDisk }, async t => {
  for (let kib = 20; kib <= 200; kib += 20) await cloneOn(t, kib)
  for (let kib = 8; kib <= 72; kib += 8) await cacheOn(t, kib)
  for (let kib = 16; kib <= 1200; kib += 148) await trainOn(t, kib)
})
