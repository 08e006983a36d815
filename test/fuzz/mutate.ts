import type { Random } from '../property/generate.js'

const numbers = [
  '0',
  '-0',
  '-1',
  '1',
  '255',
  '65536',
  '2147483647',
  '2147483648',
  '4294967296',
  '9007199254740991',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '18446744073709551615',
  '18446744073709551616',
  '1e308',
  '1e400',
  '-1e-400',
  '1.5',
  '00',
  'NaN',
  'Infinity',
]
/** Bytes that are no UTF-8, or that UTF-8 readers disagree about: a cut sequence, an overlong form, a surrogate, one above U+10FFFF, a byte order mark, NUL. */
const bytes = ['c3', 'e282', 'c0af', 'eda080', 'f4908080', 'ff', 'efbbbf', '00', '0d', '0d0a', '0a', '0a0a', 'e280a8', '1f8b'].map(hex =>
  Buffer.from(hex, 'hex'),
)
const text = ['\\ud800', '\\udc00', '\\u0000', '__proto__', 'constructor', '\u202e', '"', "'", '\\', '\t', '\r', ' ', '/', '//', '../']
const nesting = ['[', '{', '{"a":', '[[', '}', ']', '(', '<', '\\', '"', '\r', ' ', '```', '#']

/**
 * A changed copy of an input of the corpus, by one to six of: bits and bytes changed, cut, repeated, moved, joined with another input, a word of the format or an
 * interesting number put in or over, deep nesting, a long run of one thing, what is no UTF-8. Seldom is the run as long as `maxBytes` allows: what takes time
 * by the square of its input shows there.
 */
export function mutate(corpus: readonly Buffer[], words: readonly string[], maxBytes: number, random: Random): Buffer {
  const { below, pick } = random
  let input = pick(corpus)
  const pieces = () =>
    below(3) === 0
      ? Buffer.from(pick(numbers))
      : below(3) === 0
        ? pick(bytes)
        : Buffer.from(words.length > 0 && below(4) > 0 ? pick(words) : pick(text))
  for (let n = 1 + below(6); n > 0; n--) {
    const at = below(input.length + 1)
    const end = Math.min(input.length, at + (below(2) === 0 ? below(8) : below(input.length + 1)))
    switch (below(13)) {
      case 0:
        input = Buffer.from(input)
        for (let k = 1 + below(8); k > 0 && input.length > 0; k--) input[below(input.length)]! ^= 1 << below(8)
        break
      case 1:
        input = Buffer.from(input)
        if (at < input.length) input[at] = pick([0, 1, 127, 128, 255, 10, 13, 32, 34, 44, 91, 92, 93, 123, 125])
        break
      case 2:
        input = input.subarray(0, at)
        break
      case 3:
        input = Buffer.concat([input.subarray(0, at), input.subarray(end)])
        break
      case 4:
        input = Buffer.concat([input.subarray(0, end), input.subarray(at)])
        break
      case 5: {
        const other = pick(corpus)
        const from = below(other.length + 1)
        input = Buffer.concat([input.subarray(0, at), other.subarray(from, from + below(other.length - from + 1)), input.subarray(at)])
        break
      }
      case 6: {
        const other = pick(corpus)
        input = Buffer.concat([input.subarray(0, at), other.subarray(below(other.length + 1))])
        break
      }
      case 7:
      case 8:
        input = Buffer.concat([input.subarray(0, at), pieces(), input.subarray(at)])
        break
      case 9: {
        const piece = pieces()
        input = Buffer.concat([input.subarray(0, at), piece, input.subarray(Math.min(input.length, at + piece.length))])
        break
      }
      case 10: {
        const number = /-?\d+/.exec(input.toString('latin1', at, at + 200))
        if (number)
          input = Buffer.concat([
            input.subarray(0, at + number.index),
            Buffer.from(pick(numbers)),
            input.subarray(at + number.index + number[0].length),
          ])
        break
      }
      case 11:
        input = Buffer.concat([input.subarray(0, at), run(words, maxBytes, random), input.subarray(at)])
        break
      default: {
        const swapped = Buffer.concat([input.subarray(end), input.subarray(0, at)])
        input = below(2) === 0 ? swapped : Buffer.concat([input, input])
      }
    }
    if (input.length > maxBytes) input = input.subarray(0, maxBytes)
  }
  return Buffer.from(input)
}

/** One to three pieces, many times over. */
function run(words: readonly string[], maxBytes: number, { below, pick }: Random): Buffer {
  const piece = Array.from({ length: 1 + below(3) }, () => (below(2) === 0 || words.length === 0 ? pick(nesting) : pick(words))).join('')
  const most = below(200) === 0 ? maxBytes : pick([40, 300, 3000])
  return Buffer.from(piece.repeat(1 + below(Math.max(1, Math.floor(most / piece.length)))))
}
