/** Where a text stops being JSON (UTF-16 units from 0), and why. `cut`: it is fine as far as it goes. */
export type JsonError = { at: number; message: string; cut: boolean }

const space = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these inside a string
const plain = /[^"\\\u0000-\u001f]*/y
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const word = /[A-Za-z_]+/y

/**
 * Finds the first place where a text breaks the JSON grammar (RFC 8259); undefined when it does not.
 *
 * JSON.parse says where only in some versions and for some errors, and never what would have been right. Not recursive: depth costs no stack.
 */
export function locateJsonError(text: string): JsonError | undefined {
  let at = 0
  const open: ('{' | '[')[] = []
  const skip = (pattern: RegExp) => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found) at = pattern.lastIndex
    return found?.[0] ?? ''
  }
  const fail = (message: string, where = at): JsonError => ({ at: where, message, cut: where >= text.length })

  const string = (): JsonError | undefined => {
    const start = at
    at++
    for (;;) {
      skip(plain)
      if (text[at] === '"') {
        at++
        return undefined
      }
      if (at >= text.length) return { at: start, message: 'a string without its closing quote', cut: true }
      if (text[at] !== '\\') return fail('a control character inside a string: write it as an escape')
      if (skip(escaped) === '')
        return /^\\(?:u[0-9a-fA-F]{0,3})?$/.test(text.slice(at))
          ? fail('a cut escape', text.length)
          : fail('an escape that JSON does not have')
    }
  }
  const key = (): JsonError | undefined => {
    if (text[at] !== '"') return fail(text[at] === '}' ? 'a comma before the closing brace' : 'expected a name in double quotes')
    const error = string()
    if (error) return error
    skip(space)
    if (text[at] !== ':') return fail("expected ':' after the name")
    at++
    return undefined
  }
  const scalar = (): JsonError | undefined => {
    if (text[at] === '"') return string()
    const start = at
    const name = skip(word)
    if (name === 'true' || name === 'false' || name === 'null') return undefined
    if (name !== '' && at >= text.length && ['true', 'false', 'null'].some(whole => whole.startsWith(name))) return fail('a cut word')
    if (name === 'NaN' || name === 'Infinity') return fail(`${name} is not a JSON number`, start)
    if (name !== '') return fail(['True', 'False', 'None'].includes(name) ? `${name} is Python, not JSON` : 'a word without quotes', start)
    if (skip(number) !== '') return /[\d.eE]/.test(text[at] ?? '') ? fail('not a JSON number', start) : undefined
    if (/^-(?:I|$)/.test(text.slice(at)))
      return text[at + 1] === 'I' ? fail('-Infinity is not a JSON number') : fail('a cut number', text.length)
    if (text[at] === "'") return fail('single quotes: JSON has double quotes only')
    return fail('expected a value')
  }

  for (;;) {
    // a value begins here
    skip(space)
    const opener = text[at]
    let error: JsonError | undefined
    if (opener === '{' || opener === '[') {
      at++
      skip(space)
      if (text[at] !== (opener === '{' ? '}' : ']')) {
        open.push(opener)
        error = opener === '{' ? key() : undefined
        if (error) return error
        continue
      }
      at++
    } else {
      error = scalar()
      if (error) return error
    }
    // a value has ended: close what closes, or go on after a comma
    for (;;) {
      skip(space)
      const inside = open.at(-1)
      if (inside === undefined)
        return at < text.length ? fail(text[at] === '{' ? 'a second object on the line' : 'text after the end of the value') : undefined
      if (text[at] === ',') {
        at++
        skip(space)
        error = inside === '{' ? key() : text[at] === ']' ? fail('a comma before the closing bracket') : undefined
        if (error) return error
        break
      }
      const closer = inside === '{' ? '}' : ']'
      if (text[at] !== closer) return fail(`expected ',' or '${closer}'`)
      at++
      open.pop()
    }
  }
}
