import type { Victim } from './on-policy-pipe.js'

/** One kill and what came of it. */
export type Trial = {
  name: string
  lag: number
  victim: Victim
  /** Run again after the dead trainer's heartbeat was old. */
  late: boolean
  /** Steps that stood when it was killed. */
  committed: number
  /** Steps that the rerun trained. */
  redone: number
  /** Instances of the rerun whose rollouts all came from the cache. */
  cached: number
  /** Seconds from the kill until the last stage had ended. */
  noticed: number
  wrong: string[]
}

const heads = ['lag', 'killed', 'kills', 'late', 'steps that stood', 'steps redone', 'from the cache', 'all ended after', 'failed']

/** Where it was killed, and what was redone: a line for each stage and lag. */
export function tableOf(trials: readonly Trial[]): string {
  const keys = [...new Set(trials.map(({ lag, victim }) => `${lag} ${victim}`))]
  const lines = keys.sort().map(key => {
    const of = trials.filter(({ lag, victim }) => `${lag} ${victim}` === key)
    const standing = [...counted(of.map(({ committed }) => committed))]
    return [
      ...key.split(' '),
      of.length,
      of.filter(({ late }) => late).length,
      standing.map(([steps, count]) => `${steps}:${count}`).join(' '),
      mean(of.map(({ redone }) => redone)).toFixed(1),
      mean(of.map(({ cached }) => cached)).toFixed(1),
      `${mean(of.map(({ noticed }) => noticed)).toFixed(1)} s, at most ${Math.max(...of.map(({ noticed }) => noticed)).toFixed(1)} s`,
      of.filter(({ wrong }) => wrong.length > 0).length,
    ].map(String)
  })
  const rows = [heads, ...lines]
  const widths = heads.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows
    .map(
      row =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function counted(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const value of [...values].sort((a, b) => a - b)) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
