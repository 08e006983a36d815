/**
 * A repository-relative POSIX path in its plain form: `./a//b/./c` → `a/b/c`, `\` → `/`, a trailing `/` cut, `x/../y` → `y` (formulas 1.1).
 *
 * A path that leaves the tree or starts with `/` stays as it is, and so can only miss.
 */
export function normalisePath(path: string): string {
  const slashed = path.replaceAll('\\', '/')
  if (slashed.startsWith('/')) return path
  const parts: string[] = []
  for (const part of slashed.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return path
  }
  return parts.join('/')
}

/** The form in which paths are compared: plain and NFC, because Qwen tokenizers write NFC, so that a file stored in NFD could not be named otherwise. */
export function comparedPath(path: string): string {
  return normalisePath(path).normalize('NFC')
}
