/** Length as people count it: code points, not UTF-16 units. */
export function codePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count--
      i++
    }
  }
  return count
}

/** The text without lone surrogates, which have no UTF-8: each becomes `�`. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString()
}

/**
 * One line of a file as it is shown: at most `width` code points, cut around its match with `…` on each side that lost something; without a match the
 * beginning stays. A carriage return at its end is dropped, other control characters except tab and form feed become `�`.
 */
export function clipLine(line: string, width: number, [start, end]: [start: number, end: number] = [0, 0]): string {
  const text = (line.endsWith('\r') ? line.slice(0, -1) : line).replace(controls, '\ufffd')
  if (text.length <= width) return text
  // Lines can have millions of characters: look only at what may be shown, as code points.
  const from = whole(text, Math.max(0, start - 2 * width))
  const to = whole(text, Math.min(text.length, start + 4 * width))
  const points = [...text.slice(from, to)]
  if (from === 0 && to === text.length && points.length <= width) return text

  const match = [...text.slice(from, start)].length
  const length = Math.min(codePoints(text.slice(start, Math.min(end, to))), width - 2)
  if (from === 0 && match + length < width) return `${points.slice(0, width - 1).join('')}…`
  if (to === text.length && points.length - match < width) return `…${points.slice(-(width - 1)).join('')}`
  const first = match - Math.floor((width - 2 - length) / 2)
  return `…${points.slice(first, first + width - 2).join('')}…`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const controls = /[\u0000-\u0008\u000b\u000d-\u001f\u007f]/g

/** The index itself, or the next one if it would cut a surrogate pair. */
function whole(text: string, index: number): number {
  const unit = text.charCodeAt(index)
  return index > 0 && unit >= 0xdc00 && unit < 0xe000 ? index + 1 : index
}
