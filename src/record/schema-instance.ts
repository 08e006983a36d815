import { z } from 'zod'

/** What every kind of record is made of, and instances. */

export const count = z.number().int().nonnegative()
export const line = z.number().int().positive()
export const digest = z.string().regex(/^[0-9a-f]{64}$/)
export const path = z.string().min(1)

/** A line range of one file, both ends inclusive, from 1. */
export const range = z.looseObject({ path, start: line, end: line })
export const entity = z.looseObject({ path, name: z.string(), start: line, end: line })

export const target = z.looseObject({
  /** Name and version of the rule set, e.g. `codegrep/1`; tables never mix them. */
  gold_rules: z.string(),
  files: z.array(z.looseObject({ path, weight: z.number().default(1), source: z.enum(['patch', 'mined', 'both']).default('patch') })),
  ranges: z.array(range).default([]),
  modules: z.array(entity).default([]),
  functions: z.array(entity).default([]),
})

/** Facts of this machine, in no id and no key: where the commit's files are. */
export const worktree = z.looseObject({ commit: z.string(), tree: z.string(), path: z.string().optional(), bare: z.string().optional() })

/** The issue that a record is about, as SWE-bench spells its fields. */
export const task = {
  instance_id: z.string(),
  repo: z.string(),
  base_commit: z.string(),
  problem_statement: z.string(),
}

export const instance = z.looseObject({
  kind: z.literal('instance').optional(),
  v: z.literal(1).optional(),
  ...task,
  patch: z.string().optional(),
  worktree: worktree.optional(),
  target: target.optional(),
})
