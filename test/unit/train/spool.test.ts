import t from 'tap'
import { batches, createSpool, shuffled } from '#cg/train/spool.js'

const row = (id: number) => ({ ids: [1, id], spans: [1, 2], weights: [1], temperature: 1 })

function spoolOf(...ids: number[]) {
  const spool = createSpool()
  for (const id of ids) spool.add(`g${id % 2}`, row(id))
  return spool
}

t.test('rows come back as they went in, in any order', async t => {
  const spool = spoolOf(5, 6, 7)
  t.same([spool.read(2), spool.read(0), spool.read(1)], [row(7), row(5), row(6)])
  t.same(
    spool.names.map(name => name.group),
    ['g1', 'g0', 'g1'],
  )
  spool.close()
})

t.test('the order of a pass depends on seed, pass and content, not on the order of arrival', async t => {
  const one = spoolOf(1, 2, 3, 4, 5, 6, 7, 8)
  const other = spoolOf(8, 7, 6, 5, 4, 3, 2, 1)
  const order = (spool: typeof one, seed: string, pass: number) => shuffled(spool.names, seed, pass).map(i => spool.read(i).ids[1])
  t.same(order(one, '0', 0), order(other, '0', 0))
  t.not(String(order(one, '0', 0)), String(order(one, '0', 1)))
  t.not(String(order(one, '0', 0)), String(order(one, '1', 0)))
  t.same([...order(one, '0', 0)].sort(), [1, 2, 3, 4, 5, 6, 7, 8])
  one.close()
  other.close()
})

t.test('equal rows keep their order and are all read', async t => {
  const spool = spoolOf(3, 3, 3)
  t.same(shuffled(spool.names, '0', 0), [0, 1, 2])
  spool.close()
})

t.test('batches run across passes; the last is smaller', async t => {
  const spool = spoolOf(1, 2, 3, 4, 5)
  const cut = [...batches(spool.names, '0', 2, 4)]
  t.same(
    cut.map(batch => batch.length),
    [4, 4, 2],
  )
  t.same(cut.flat(), [...shuffled(spool.names, '0', 0), ...shuffled(spool.names, '0', 1)])
  t.same([...batches([], '0', Number.POSITIVE_INFINITY, 4)], [], 'no rows end at once')
  const endless = batches(spool.names, '0', Number.POSITIVE_INFINITY, 4)
  for (let n = 0; n < 10; n++) t.equal(endless.next().value?.length, 4)
  spool.close()
})
