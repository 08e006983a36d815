import type { Score } from '#cg/record/schema.js'

/** A score of instance `i1` and policy `p`: F 1 in two turns with four calls, unless told otherwise. */
export function score(fields: Partial<Score> = {}): Score {
  const instance_id = fields.instance_id ?? 'i1'
  const name = fields.name ?? 'p'
  return {
    kind: 'score',
    v: 1,
    id: 'x',
    rollout: `${name}/${instance_id}`,
    instance_id,
    name,
    gold_rules: 'codegrep/1',
    f05: 1,
    precision: 1,
    recall: 1,
    answered: true,
    fault: false,
    turns: 2,
    calls: 4,
    calls_not_run: 0,
    calls_per_turn: 2,
    tokens: 100,
    ...fields,
  }
}

/** Scores of instances i0, i1 … with the given F. */
export function scores(name: string, ...f05: number[]): Score[] {
  return f05.map((f, n) => score({ name, instance_id: `i${n}`, f05: f }))
}
