import { commonName } from './patch-names.js'

/**
 * How many directories the names of a patch carry in front: 0 when the two sides of some entry are spelt alike (`git diff --no-prefix`, svn), 1 else, git's
 * `a/` and `b/`.
 */
export function detectStrip(patch: string): 0 | 1 {
  for (const [, names] of patch.matchAll(/^diff --git (.*?)\r*$/gm)) if (typeof commonName(names!, 0) === 'string') return 0
  for (const [, old, new_] of patch.matchAll(/^--- ([^\t\r\n]+)[^\n]*\n\+\+\+ ([^\t\r\n]+)[^\n]*\n@@ -/gm)) if (old === new_) return 0
  return 1
}
