import type { Random } from '../property/generate.js'

/** What is fuzzed: one way to read bytes, and what must hold for any bytes. */
export type Target = {
  name: string
  /** Inputs to begin with: good ones, and near misses. */
  corpus(): Buffer[]
  /** Pieces of the format, spliced into inputs. */
  words: readonly string[]
  /** Inputs longer than this are cut. */
  maxBytes: number
  /**
   * Throws when a promise is broken. Returns what happened in a few words: inputs with words that were not seen before join the corpus, which stands in for
   * the coverage of code. `random` is seeded by the input, so that the input alone gives the same again.
   */
  check(input: Buffer, random: Random): string | Promise<string>
  close?(): void | Promise<void>
}

/** A promise that does not hold. */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

/** What is different between messages of one kind: numbers, quoted text. */
export function outline(message: string): string {
  return message
    .replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, '…')
    .replace(/\d+/g, '#')
    .slice(0, 80)
}
