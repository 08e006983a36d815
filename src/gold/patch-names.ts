import { unquote, unquoteName } from './quoting.js'

/** Without its first `count` directories (patch -p); null when it has fewer. */
export function stripPrefix(name: string, count: number): string | null {
  let rest = name
  for (let n = 0; n < count; n++) {
    const slash = rest.indexOf('/')
    if (slash === -1) return null
    rest = rest.slice(slash + 1).replace(/^\/+/, '')
  }
  return rest
}

/**
 * The name behind `--- ` or `+++ `: quoted, or up to a tab (a time stamp may follow). `nothing` is /dev/null; null a name with too few directories for `strip`;
 * undefined a broken quote.
 */
export function headerName(text: string, strip: number): { name: string | null; nothing: boolean } | undefined {
  const name = text.startsWith('"') ? unquoteName(text) : text.split('\t', 1)[0]!
  if (name === undefined) return undefined
  return name === '/dev/null' ? { name: null, nothing: true } : { name: stripPrefix(name, strip), nothing: false }
}

/**
 * The name in `diff --git X Y` (`text` is `X Y`), which the line tells only when both sides agree after stripping; null otherwise, undefined for a broken quote.
 *
 * Unquoted names may hold blanks: the line is cut at the blank that makes both halves agree. The farther behind the cut, the longer is the first name and the
 * shorter the second, so that the one blank where they are equally long is found by halving.
 */
export function commonName(text: string, strip: number): string | null | undefined {
  if (text.startsWith('"')) {
    const first = unquote(text)
    const second = first && unquoteName(first.rest.replace(/^ +/, ''))
    return second === undefined ? undefined : agreed(first!.name, second, strip)
  }
  if (text.endsWith('"')) {
    const cut = text.indexOf(' "')
    const second = cut === -1 ? undefined : unquoteName(text.slice(cut + 1))
    return second === undefined ? undefined : agreed(text.slice(0, cut), second, strip)
  }
  const cuts: number[] = []
  for (let cut = text.indexOf(' '); cut !== -1; cut = text.indexOf(' ', cut + 1)) cuts.push(cut)
  for (let low = 0, high = cuts.length; low < high; ) {
    const middle = (low + high) >> 1
    const first = stripPrefix(text.slice(0, cuts[middle]), strip)
    const second = stripPrefix(text.slice(cuts[middle]! + 1), strip)
    if (first !== null && first === second) return first
    if (first === null || (second !== null && first.length < second.length)) low = middle + 1
    else high = middle
  }
  return null
}

function agreed(first: string, second: string, strip: number): string | null {
  const name = stripPrefix(first, strip)
  return name === stripPrefix(second, strip) ? name : null
}
