import { createContext, Script } from 'node:vm'
import picomatch from 'picomatch'
import { nameBytes } from '../repo/shown-name.js'

/** Which of `names` match, in order; `timeout`: those found until then. */
export type GlobResult = { matched: number[]; timeout: boolean }

/**
 * Indices of the names that match a glob: `*`, `?`, `[…]`, `{a,b}`, and `**` for any number of folders. Names that begin with a dot match too.
 *
 * A glob without `/` matches at any depth; a leading `./` or `/` means the root; one that ends in `/` means all below. The glob becomes a regular
 * expression, and a hostile one can take for ever: after `timeoutMs` it is interrupted.
 */
export function matchGlob(glob: string, names: readonly string[], timeoutMs: number): GlobResult {
  const matched: number[] = []
  const expression = picomatch.makeRe(plainParentheses(rooted(glob)), {
    dot: true,
    nonegate: true,
    noextglob: true,
    posix: true,
    maxLength: 4096,
  })
  const scan = () => {
    for (let i = 0; i < names.length; i++) if (expression.test(plain(names[i]!))) matched.push(i)
  }
  interruptible.scan = scan
  try {
    runScan.runInContext(interruptible, { timeout: Math.max(1, Math.round(timeoutMs)) })
    return { matched, timeout: false }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    return { matched, timeout: true }
  }
}

/** Only vm interrupts a regular expression. The function that it calls runs in this realm, and the limit holds for it all the same. */
const interruptible = createContext({ scan: () => {} })
const runScan = new Script('scan()')

/** Longer globs are refused (in characters). */
export const longestGlob = 1000

/** Parentheses are characters of a name; the library would take them for a group. */
function plainParentheses(glob: string): string {
  return glob.replace(/\\.|[()]/g, found => (found.length === 2 ? found : `\\${found}`))
}

/** A name that is shown in quotes is matched as what it stands for. */
function plain(name: string): string {
  return name.startsWith('"') ? nameBytes(name).toString() : name
}

function rooted(glob: string): string {
  const bare = glob.replace(/^(?:\.?\/)+/, '')
  const whole = bare.endsWith('/') ? `${bare}**` : bare
  return whole.includes('/') || bare !== glob ? whole : `**/${whole}`
}
