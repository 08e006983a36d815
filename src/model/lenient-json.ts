/** A value, and whether the text had to be forgiven something to give it. */
export type LenientResult = { value: unknown; repaired: boolean }

/**
 * Reads JSON, and what models write instead of it: single quotes, trailing commas, a code fence around it, Python's True, False and None.
 *
 * Undefined for anything else. Strict JSON gives what JSON.parse gives, `repaired: false`.
 */
export function readLenientJson(text: string): LenientResult | undefined {
  const trimmed = text.trim()
  try {
    return { value: JSON.parse(trimmed), repaired: false }
  } catch {}
  const state: Reader = { text: unfenced(trimmed), at: 0 }
  try {
    const value = readValue(state, 0)
    skipSpace(state)
    return state.at === state.text.length ? { value, repaired: true } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** What stands inside a code fence that begins and ends the text. */
function unfenced(text: string): string {
  const opened = /^```[\w-]*/.exec(text)?.[0].length ?? 0
  return opened > 0 && text.length >= opened + 3 && text.endsWith('```') ? text.slice(opened, -3) : text
}

type Reader = { text: string; at: number }
const words = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
  ['True', true],
  ['False', false],
  ['None', null],
])

function readValue(r: Reader, depth: number): unknown {
  if (depth > 100) throw new SyntaxError('too deep')
  skipSpace(r)
  const c = r.text[r.at]
  if (c === '{') return readObject(r, depth)
  if (c === '[') return readArray(r, depth)
  if (c === '"' || c === "'") return readString(r, c)
  const word = /[\w.+-]+/y
  word.lastIndex = r.at
  const found = word.exec(r.text)?.[0] ?? ''
  r.at += found.length
  if (words.has(found)) return words.get(found)
  if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(found)) return Number(found)
  throw new SyntaxError(`unexpected ${c ?? 'end'}`)
}

function readObject(r: Reader, depth: number): Record<string, unknown> {
  const out: Record<string, unknown> = Object.create(null)
  r.at++
  while (!take(r, '}')) {
    skipSpace(r)
    const quote = r.text[r.at]
    if (quote !== '"' && quote !== "'") throw new SyntaxError('a key must be quoted')
    const key = readString(r, quote)
    if (!take(r, ':')) throw new SyntaxError('no colon')
    out[key] = readValue(r, depth + 1)
    if (!take(r, ',') && r.text[r.at] !== '}') throw new SyntaxError('no comma')
  }
  return { ...out }
}

function readArray(r: Reader, depth: number): unknown[] {
  const out: unknown[] = []
  r.at++
  while (!take(r, ']')) {
    out.push(readValue(r, depth + 1))
    if (!take(r, ',') && r.text[r.at] !== ']') throw new SyntaxError('no comma')
  }
  return out
}

const escapes: Record<string, string> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

function readString(r: Reader, quote: string): string {
  let out = ''
  for (r.at++; r.at < r.text.length; r.at++) {
    const c = r.text[r.at]!
    if (c === quote) {
      r.at++
      return out
    }
    if (c !== '\\') {
      out += c
      continue
    }
    const escaped = r.text[++r.at] ?? ''
    const hex = escaped === 'u' ? /^[0-9a-fA-F]{4}/.exec(r.text.slice(r.at + 1))?.[0] : undefined
    if (hex) {
      out += String.fromCharCode(Number.parseInt(hex, 16))
      r.at += 4
    } else out += escapes[escaped] ?? escaped
  }
  throw new SyntaxError('a string does not end')
}

function take(r: Reader, c: string): boolean {
  skipSpace(r)
  if (r.text[r.at] !== c) return false
  r.at++
  return true
}

function skipSpace(r: Reader): void {
  while (/\s/.test(r.text[r.at] ?? '')) r.at++
}
