import { createHash } from 'node:crypto'

/** Uniform 32-bit integers: xoshiro128** (Blackman and Vigna, 2018), its state the first 16 bytes of the seed text's sha256. */
export function random32(seed: string): () => number {
  const digest = createHash('sha256').update(seed).digest()
  let [a, b, c, d] = [0, 4, 8, 12].map(at => digest.readInt32LE(at)) as [number, number, number, number]
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
