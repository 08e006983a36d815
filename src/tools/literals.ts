/**
 * The strings that a pattern of ripgrep's dialect stands for, if it is one string or an alternation of strings (`foo|bar\.baz`); undefined for any other.
 *
 * Only escapes that surely mean the character itself are followed (regex-syntax: meta characters, and `/`, `"`, `'`); all else is left to ripgrep.
 */
export function literalsOf(pattern: string): string[] | undefined {
  const literals: string[] = []
  let current = ''
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i]!
    if (c === '|') {
      literals.push(current)
      current = ''
    } else if (c === '\\') {
      const escaped = pattern[++i]
      if (escaped === undefined || !'\\.+*?()|[]{}^$#&-~/"\''.includes(escaped)) return undefined
      current += escaped
    } else if ('.+*?()[{^$\n'.includes(c)) return undefined
    else current += c
  }
  literals.push(current)
  return literals.includes('') ? undefined : literals
}
