import t from 'tap'
import { ahead } from '#cg/train/ahead.js'

function source(count: number, failAt = Number.POSITIVE_INFINITY) {
  const state = { given: 0, closed: false }
  async function* numbers() {
    try {
      for (; state.given < count; ) {
        if (state.given === failAt) throw new Error('broken')
        yield state.given++
      }
    } finally {
      state.closed = true
    }
  }
  return { state, numbers: numbers() }
}
const settle = () => new Promise(resolve => setTimeout(resolve, 10))

t.test('reads so far ahead, and no farther', async t => {
  for (const count of [0, 1, 3]) {
    const { state, numbers } = source(10)
    const seen: number[] = []
    for await (const n of ahead(numbers, count)) {
      await settle()
      t.equal(state.given, Math.min(10, n + 1 + count))
      seen.push(n)
    }
    t.same(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  }
})

t.test('an error comes after what preceded it', async t => {
  const seen: number[] = []
  const reading = async () => {
    for await (const n of ahead(source(10, 3).numbers, 2)) seen.push(n)
  }
  await t.rejects(reading(), { message: 'broken' })
  t.same(seen, [0, 1, 2])
})

t.test('stopping early closes the source', async t => {
  const { state, numbers } = source(10)
  for await (const n of ahead(numbers, 1)) if (n === 2) break
  await settle()
  t.ok(state.closed)
})
