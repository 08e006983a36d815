import { commonName } from './patch-names.js'

/**
 * How many directories the names of a patch carry in front: 0 when the two sides of some entry are spelt alike (`git diff --no-prefix`, svn), 1 else, git's
 * `a/` and `b/`.
 */
export function detectStrip(patch: string): 0 | 1 {
  for (const [, names] of patch.matchAll(/^diff --git (.*?)\r*$/gm)) if (typeof commonName(names!, 0) === 'string') return 0
  const lines = patch.split('\n')
  for (const [at, line] of lines.entries()) {
    if (!line.startsWith('--- ') || !lines[at + 1]?.startsWith('+++ ') || !lines[at + 2]?.startsWith('@@ -')) continue
    const [old, new_] = [line, lines[at + 1]!].map(header => /^[^\t\r]*/.exec(header.slice(4))![0])
    if (old !== '' && old === new_) return 0
  }
  return 1
}
