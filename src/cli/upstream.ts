import type { End, Run } from '../record/schema.js'

/** What the stages before this one said about themselves. */
export type Upstream = {
  observe(kind: string | undefined, value: Record<string, unknown>): void
  /** Is a `run` open, its `end` still to come? */
  open(): boolean
  runs(): readonly Run[]
  /** Commands that did not end well: no `end`, an `end` that is not ok, or a cut last line. */
  early(): string[]
}

/** Follows the `run` and `end` records of the input (stream contract, "Beginning and end"). The same run may stand in several files. */
export function followUpstream(): Upstream {
  const runs: Run[] = []
  const open = new Map<string, Run[]>()
  const failed: string[] = []

  return {
    observe(kind, value) {
      if (kind === 'run') {
        const run = value as unknown as Run
        runs.push(run)
        open.set(run.id, [...(open.get(run.id) ?? []), run])
      } else if (kind === 'end') {
        const end = value as unknown as End
        const run = open.get(end.run)?.pop()
        if (open.get(end.run)?.length === 0) open.delete(end.run)
        if (end.ok !== true) failed.push(run?.command ?? `cg-${end.stage}`)
      }
    },
    open: () => open.size > 0,
    runs: () => runs,
    early: () => [...new Set([...failed, ...[...open.values()].flat().map(run => run.command)])],
  }
}
