/**
 * Reads up to `count` elements ahead of the consumer, so that the producer's pipe does not stand still while a step trains.
 *
 * An error of the source comes after the elements that preceded it. Stopping early closes the source.
 */
export async function* ahead<T>(source: AsyncIterable<T>, count: number): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]()
  const fetched: Promise<IteratorResult<T>>[] = []
  let tail: Promise<unknown> = Promise.resolve()
  const fetch = () => {
    const next = tail.then(() => iterator.next())
    next.catch(() => {}) // reported when its turn comes
    tail = next
    fetched.push(next)
  }
  try {
    for (;;) {
      while (fetched.length <= count) fetch()
      const next = await fetched.shift()!
      if (next.done) return
      yield next.value
    }
  } finally {
    void iterator.return?.().catch(() => {})
  }
}
