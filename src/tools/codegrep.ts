import { canonical, sha256 } from '../record/canonical.js'
import { glob } from './glob.js'
import { grep } from './grep.js'
import { read } from './read.js'
import { engine } from './ripgrep.js'
import type { Caps, Toolset } from './toolset.js'

/** CodeGrep, appendix A.1 (layer 3): 4,096 characters, 50 matches, 200 lines, 10 s for grep and glob, 5 s for read. */
export const codegrepCaps: Caps = {
  chars: 4096,
  matches: 50,
  lines: 200,
  lineChars: 300,
  timeoutMs: { grep: 10_000, glob: 10_000, read: 5_000 },
}

/** Raised when an observation changes for the same call: cached results of older versions are not used. */
const version = 1

/** The toolset `codegrep`: grep, glob and read (CodeGrep, section 3.3; protocol, "Observations"). */
export function codegrep(caps: Partial<Caps> = {}): Toolset {
  const whole = { ...codegrepCaps, ...caps }
  const tools = [grep, glob, read]
  const described = tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
  return {
    name: 'codegrep',
    digest: sha256(canonical({ name: 'codegrep', version, engine, tools: described, caps: whole })),
    tools,
    caps: whole,
  }
}
