import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'

const gib = 2 ** 30

/** Bytes that one pass may plan: what --memory says in GiB, else half of the machine's memory, or of its cgroup's limit. */
export function memoryBudget(asked: number | undefined): number {
  if (asked !== undefined) return asked * gib
  const limit = constrainedMemory() || Number.POSITIVE_INFINITY
  return Math.min(limit, totalmem()) / 2
}
