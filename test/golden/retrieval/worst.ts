import type { GoldenResult } from '../kind.js'

/** Collects the deviations of a case: the first that exceeds its bound fails it, the worst is reported. */
export function worst(bound: number) {
  let error = 0
  let message: string | undefined
  return {
    /** Absolute deviation, or relative to the expected value. */
    near(what: string, actual: number, expected: number, scale: 'absolute' | 'relative' = 'absolute') {
      const deviation = Math.abs(actual - expected) / (scale === 'relative' ? Math.max(1, Math.abs(expected)) : 1)
      error = Math.max(error, Number.isNaN(deviation) ? Number.POSITIVE_INFINITY : deviation)
      if (!(deviation <= bound)) message ??= `${what}: ${actual}, expected ${expected}`
    },
    same(what: string, actual: unknown, expected: unknown) {
      const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)]
      if (a !== e) message ??= `${what}: ${a}, expected ${e}`
    },
    result(): GoldenResult {
      return message === undefined ? { status: 'passed', error } : { status: 'failed', error, message }
    },
  }
}
