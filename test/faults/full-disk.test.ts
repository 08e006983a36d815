import t from 'tap'
import { cacheOn, cloneOn, fetchOnFullDisk, trainOn } from './full-disk.js'
import { noSmallDisk } from './small-disk.js'

t.setTimeout(280_000)

t.test('a clone that does not fit, a checkout that does not fit', { skip: noSmallDisk }, async t => {
  await cloneOn(t, 80)
  await cloneOn(t, 190)
})

t.test('a fetch that does not fit', { skip: noSmallDisk }, fetchOnFullDisk)

t.test('a cache that does not fit', { skip: noSmallDisk }, t => cacheOn(t, 60))

t.test('a run directory that does not fit', { skip: noSmallDisk }, t => trainOn(t, 300))
