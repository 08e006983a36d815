import t from 'tap'
import { createLimit } from '#cg/tools/limit.js'

t.test('at most so many at once, in order', async t => {
  const limit = createLimit(2)
  let running = 0
  let most = 0
  const order: number[] = []
  await Promise.all(
    [0, 1, 2, 3, 4, 5].map(n =>
      limit(async () => {
        most = Math.max(most, ++running)
        order.push(n)
        await new Promise(resolve => setTimeout(resolve, 3))
        running--
      }),
    ),
  )
  t.equal(most, 2)
  t.strictSame(order, [0, 1, 2, 3, 4, 5])
})

t.test('work that throws gives its place back', async t => {
  const limit = createLimit(1)
  await t.rejects(limit(() => Promise.reject(new Error('no'))))
  t.equal(await limit(async () => 1), 1)
})
