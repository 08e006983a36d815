import type { GoldenResult, Measure } from './kind.js'

type Numbers = ArrayLike<number>

/** Collects the deviations of a case: each quantity keeps its worst one; the first that exceeds its bound, or something that is not equal, fails the case. */
export function measures() {
  const worst = new Map<string, Measure>()
  let message: string | undefined

  function add(what: string, error: number, bound: number, where = ''): void {
    const e = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error
    const before = worst.get(what)
    if (!before || e > before.error) worst.set(what, { what, error: e, bound })
    if (!(e <= bound)) message ??= `${where || what}: ${what} off by ${e.toExponential(1)}, bound ${bound.toExponential(0)}`
  }

  return {
    add,
    /** Largest absolute difference of two lists of one length. */
    near(what: string, actual: Numbers, expected: Numbers, bound: number, where = ''): void {
      if (actual.length !== expected.length) message ??= `${where || what}: ${actual.length} values, expected ${expected.length}`
      else add(what, largestDifference(actual, expected), bound, where)
    },
    /** ‖actual − expected‖ / ‖expected‖. */
    relative(what: string, actual: Numbers, expected: Numbers, bound: number, where = ''): void {
      const norm = euclid(expected)
      const difference = euclid(Float64Array.from(expected, (x, i) => x - actual[i]!))
      add(what, norm === 0 ? difference : difference / norm, bound, where)
    },
    same(what: string, actual: unknown, expected: unknown): void {
      const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)]
      if (a !== e) message ??= `${what}: ${a}, expected ${e}`
    },
    fail(what: string): void {
      message ??= what
    },
    result(): GoldenResult {
      const list = [...worst.values()]
      return message === undefined ? { status: 'passed', measures: list } : { status: 'failed', measures: list, message }
    },
  }
}

export function largestDifference(a: Numbers, b: Numbers): number {
  let largest = 0
  for (let i = 0; i < a.length; i++) {
    const d = Math.abs(a[i]! - b[i]!)
    if (!(d <= largest)) largest = d
  }
  return largest
}

export function euclid(x: Numbers): number {
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += x[i]! * x[i]!
  return Math.sqrt(sum)
}
