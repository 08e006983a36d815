const escapes: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 }

/**
 * Reads the C-quoted name that `text` begins with (git-config(1), core.quotePath): `"caf\303\251"` → `café`, and what stands behind it.
 *
 * Octal escapes are bytes of UTF-8; bytes that are none become U+FFFD. Undefined: the quote does not end, or an escape is none of git's.
 */
export function unquote(text: string): { name: string; rest: string } | undefined {
  const bytes: Buffer[] = []
  let at = 1
  while (at < text.length) {
    const plain = /^[^"\\]+/.exec(text.slice(at))?.[0] ?? ''
    bytes.push(Buffer.from(plain))
    at += plain.length
    if (text[at] === '"') return { name: Buffer.concat(bytes).toString('utf8'), rest: text.slice(at + 1) }
    const octal = /^\\([0-3][0-7]{2})/.exec(text.slice(at))
    const code = octal ? Number.parseInt(octal[1]!, 8) : escapes[text[at + 1] ?? '']
    if (code === undefined) return undefined
    bytes.push(Buffer.from([code]))
    at += octal ? 4 : 2
  }
  return undefined
}

/** A name as git writes it, quoted only where it must be. Undefined for a broken quote. */
export function unquoteName(text: string): string | undefined {
  return text.startsWith('"') ? unquote(text)?.name : text
}
