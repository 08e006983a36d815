import { sha256 } from '../record/canonical.js'

/** Draws from a stream of uniform numbers. */
export type Draws = {
  /** True with probability `p`. */
  chance(p: number): boolean
  /** 0 ≤ integer < n. */
  below(n: number): number
  /** Throws RangeError for an empty list. */
  pick<T>(list: readonly T[]): T
  /** One of the keys of a table of weights. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
  shuffled<T>(list: readonly T[]): T[]
}

/** Draws that depend on a key and on how many came before, and on nothing else. */
export function drawsOf(key: string): Draws {
  let count = 0
  return drawsFrom(() => Number.parseInt(sha256(`${key} ${count++}`).slice(0, 8), 16) / 2 ** 32)
}

/** @param uniform gives numbers in [0, 1) */
export function drawsFrom(uniform: () => number): Draws {
  const below = (n: number) => Math.floor(uniform() * n)
  return {
    chance: p => uniform() < p,
    below,
    pick(list) {
      if (list.length === 0) throw new RangeError('nothing to pick from')
      return list[below(list.length)]!
    },
    weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
      const entries = Object.entries(weights) as [K, number][]
      let left = uniform() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [key, weight] of entries) {
        left -= weight
        if (left < 0) return key
      }
      return entries.at(-1)![0]
    },
    shuffled<T>(list: readonly T[]): T[] {
      const out = [...list]
      for (let i = out.length - 1; i > 0; i--) {
        const j = below(i + 1)
        const kept = out[i]!
        out[i] = out[j]!
        out[j] = kept
      }
      return out
    },
  }
}
