import { createHash } from 'node:crypto'

/** Uniform 32-bit integers from a text: xoshiro128** whose state is the first 16 bytes of the text's sha256. */
export function random32(seed: string): () => number {
  const digest = createHash('sha256').update(seed).digest()
  return xoshiro128([digest.readInt32LE(0), digest.readInt32LE(4), digest.readInt32LE(8), digest.readInt32LE(12)])
}

/** The generator xoshiro128** 1.1 (Blackman and Vigna, 2018): four 32-bit words of state, not all 0. */
export function xoshiro128([a, b, c, d]: [number, number, number, number]): () => number {
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const t = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = rotate(d, 11)
    return result
  }
}

function rotate(x: number, by: number): number {
  return (x << by) | (x >>> (32 - by))
}
