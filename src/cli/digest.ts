import { createHash } from 'node:crypto'
import { canonical } from '../record/canonical.js'

/**
 * sha256 of the lines of an input, each with a line feed; the same work has the same digest on every machine and at every time.
 *
 * So a line that holds a `timing`, or a worktree's place, counts as its canonical JSON without them.
 */
export function inputDigest(): { add(value: Record<string, unknown>, bytes: Buffer): void; hex(): string } {
  const hash = createHash('sha256')
  return {
    add(value, bytes) {
      hash.update(bytes.includes('"timing"') || bytes.includes('"worktree"') ? lasting(value, bytes) : bytes)
      hash.update('\n')
    },
    hex: () => hash.digest('hex'),
  }
}

function lasting(value: Record<string, unknown>, bytes: Buffer): string | Buffer {
  try {
    return canonical(without(value))
  } catch {
    return bytes // a number beyond a double's range, or nesting beyond the stack: no canonical form
  }
}

function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without)
  if (typeof value !== 'object' || value === null) return value
  const kept: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value)) {
    if (key === 'timing') continue
    if (key === 'worktree' && typeof member === 'object' && member !== null) {
      const { path: _path, bare: _bare, ...facts } = member as Record<string, unknown>
      kept[key] = without(facts)
    } else kept[key] = without(member)
  }
  return kept
}
