import t from 'tap'
import type { Adapter } from '#cg/engine/types.js'
import { createAdapterShelf } from '#cg/train/adapter-shelf.js'

t.test('an adapter stays while each step asks for it, and goes with the first that does not', async t => {
  const log: string[] = []
  const shelf = createAdapterShelf(async sha256 => {
    if (sha256 === 'nowhere') return undefined
    log.push(`load ${sha256}`)
    return { dispose: () => log.push(`dispose ${sha256}`) } as unknown as Adapter
  })
  const asked = async (...digests: string[]) => {
    log.length = 0
    for (const sha256 of digests) await shelf.get(sha256)
    shelf.tidy()
    return log
  }
  t.same(await asked('a', 'b', 'a'), ['load a', 'load b'], 'rollouts of one step share them')
  t.same(await asked('b', 'c'), ['load c', 'dispose a'])
  t.same(await asked('c', 'd'), ['load d', 'dispose b'], 'a lag of one step: never more than two')
  t.equal(await shelf.get('nowhere'), undefined)
  t.same(await asked('d'), ['dispose c'])
  log.length = 0
  shelf.dispose()
  t.same(log, ['dispose d'])
})
