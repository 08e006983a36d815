import { FatalError } from '#cg/record/fault.js'
import type { Cache } from '#cg/store/cache.js'

export const keys = 24

export const keyOf = (n: number) => ({ stage: 'fuzz', version: 1, n })

/**
 * What is put under key n: the key and a number that tells when. Sizes are those that SQLite stores differently: in a cell, with a tail on other pages, packed.
 * Long ones of different keys begin alike and have the same length, so that a tail that gets under another head is not found by its look.
 */
export function madeValue(n: number, turn: number): unknown {
  const size = [10, 700, 3500, 12_000][n % 4]!
  const noise = n % 4 === 3
  let text = ''
  for (let i = 0; text.length < size; i++) text += noise ? Math.imul(i + 1 + n * 1000 + turn, 0x9e3779b1).toString(36) : 'all begin alike, '
  return { text: text.slice(0, size), n: String(n).padStart(3, '0'), turn }
}

/**
 * Reads every key, then puts some. Returns how many were there, or the code that said that the file cannot be used. Throws for a value that was never put under
 * its key, and for any other error.
 */
export function workOn(cache: Cache, turn: number): string {
  try {
    let found = 0
    for (let n = 0; n < keys; n++) {
      const value = cache.get(keyOf(n)) as { turn?: number } | undefined
      if (value === undefined) continue
      found++
      if (JSON.stringify(value) !== JSON.stringify(madeValue(n, Number(value.turn))))
        throw new Error(`a wrong value under key ${n}: ${JSON.stringify(value).slice(-60)}`)
    }
    for (let n = turn % 3; n < keys; n += 5) cache.put(keyOf(n), madeValue(n, turn))
    cache.flush()
    return found === keys ? 'all' : found === 0 ? 'none' : 'some'
  } catch (error) {
    if (error instanceof FatalError && /^E_CACHE/.test(error.code)) return error.code
    throw error
  }
}

export function closed(cache: Cache): string {
  try {
    cache.close()
    return ''
  } catch (error) {
    if (error instanceof FatalError && /^E_CACHE/.test(error.code)) return error.code
    throw error
  }
}
