/** A path as a model wrote it: inside the tree (`''` is its root), or refused with a reason. */
export type Guarded = { inside: string } | { refused: string }

/**
 * Accepts repository-relative paths only. `./` and a trailing `/` are dropped; absolute paths, `..`, `.git` in any case and NUL are refused by their
 * spelling, before anything is looked at.
 */
export function guardPath(path: string): Guarded {
  if (path.includes('\0')) return { refused: 'a path has no NUL' }
  if (path.startsWith('/')) return { refused: 'write paths relative to the repository, without a leading /' }
  const parts = path.split('/').filter(part => part !== '' && part !== '.')
  if (parts.includes('..')) return { refused: 'paths stay inside the repository' }
  if (parts.some(part => part.toLowerCase() === '.git')) return { refused: 'the files of git are not part of the repository' }
  return { inside: parts.join('/') }
}
