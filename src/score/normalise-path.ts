/**
 * A path as it is compared: `./a//b/./c` → `a/b/c`, `\` → `/`, a trailing `/` cut, `x/../y` → `y`, NFC (formulas 1.1).
 *
 * A path that leaves the tree or starts with `/` stays as it is, and so can only miss. NFC because Qwen tokenizers write NFC: a file stored in NFD could not
 * be named otherwise.
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
  return parts.join('/').normalize('NFC')
}
