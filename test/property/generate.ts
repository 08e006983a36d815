/** A seeded generator of test data; the seed is in every test's name, so that a failure can be had again. */
export type Random = {
  /** A whole number from 0 to below `bound`. */
  below(bound: number): number
  pick<V>(values: readonly V[]): V
  /** Text of up to `length` characters, many of them troublesome. */
  text(length: number): string
}

/** mulberry32: 32 bits of state, enough for test data. */
export function random(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return (x ^ (x >>> 14)) >>> 0
  }
  const below = (bound: number) => next() % bound
  const pick = <V>(values: readonly V[]) => values[below(values.length)]!
  const characters = ['a', 'Z', ' ', '"', '\\', '/', '\n', '\t', '\u0000', '\u2028', 'é', '漢', '😀', '{', '}', '[', ',', ':', '0']
  return { below, pick, text: length => Array.from({ length: below(length + 1) }, () => pick(characters)).join('') }
}

/** Any JSON value, nested at most `depth` deep. */
export function json({ below, pick, text }: Random, depth: number): unknown {
  const r = { below, pick, text }
  switch (below(depth > 0 ? 7 : 5)) {
    case 0:
      return null
    case 1:
      return below(2) === 0
    case 2:
      return pick([0, -1, 1.5, 1e-300, 123456789, 2 ** 53, -(2 ** 40) - 0.5])
    case 3:
    case 4:
      return text(12)
    case 5:
      return Array.from({ length: below(4) }, () => json(r, depth - 1))
    default:
      return Object.fromEntries(Array.from({ length: below(4) }, () => [text(6), json(r, depth - 1)]))
  }
}
