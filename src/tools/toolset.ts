import type { CallStatus } from '../record/schema.js'
import type { Tree } from './tree.js'

/** What a tool call gave: text for the model and a status for us; the text's last line says the status when it is not `ok` (of a read that was cut: its first). */
export type Observation = { text: string; status: CallStatus; truncated: boolean }

export type Caps = {
  /** Code points of one observation. */
  chars: number
  matches: number
  lines: number
  /** A longer line is cut around its match. */
  lineChars: number
  timeoutMs: { grep: number; glob: number; read: number }
  /** Files grep sees when no glob is given (`*.py` in the recipe `codegrep`). */
  grepGlob?: string
}

export type Tool = {
  name: string
  /** For the `full` prompt: JSON schema of the arguments, in the form chat templates take. */
  description: string
  parameters: Record<string, unknown>
  /** Why the arguments are not acceptable, or undefined. */
  check(args: Record<string, unknown>): string | undefined
  run(tree: Tree, args: Record<string, unknown>, caps: Caps, signal?: AbortSignal): Promise<Observation>
}

/** A named set of read-only, deterministic tools; `digest` changes when an observation could. */
export type Toolset = { name: string; digest: string; tools: readonly Tool[]; caps: Caps }

/** Runs calls against trees: validation, at most `cores` at once, a queue of 64, results cached by (tree id, call, caps). */
export interface ToolRunner {
  call(tree: Tree, name: string, args: unknown, signal?: AbortSignal): Promise<Observation>
}
