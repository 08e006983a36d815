/** Runs at most `width` pieces of work at once, the others in the order in which they came. */
export function createLimit(width: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async work => {
    if (running < width) running++
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      return await work()
    } finally {
      // The place goes to the next in line, who does not count itself again.
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
