import { FatalError } from '../record/fault.js'
import type { Score, TableRow } from '../record/schema.js'
import { mean, quantile } from './averages.js'
import { groupBy } from './group-by.js'

/** Value of a row for scores that lack the field it is broken down by. */
const absent = '(none)'

/**
 * Rows of the retrieval table, one a policy in the order of first appearance (CodeGrep, Table 2), each followed by its breakdown by `field` where one is given.
 *
 * F, precision, recall and the share of F ≥ 0.8 are over all `n` rollouts; turns, calls, tokens and seconds over those that did not fail.
 */
export function tableRows(scores: readonly Score[], field?: string): TableRow[] {
  const byName = groupBy(scores, score => score.name)
  return [...byName].flatMap(([name, own]) => {
    const overall = tableRow(name, own)
    if (field === undefined) return [overall]
    const byValue = groupBy(own, score => (score[field] === undefined ? absent : String(score[field])))
    const values = [...byValue.keys()].sort()
    return [overall, ...values.map(value => ({ ...tableRow(name, byValue.get(value)!), by: { field, value } }))]
  })
}

function tableRow(name: string, scores: readonly Score[]): TableRow {
  const scored = scores.filter(score => !score.fault)
  const over = (of: (score: Score) => number) => mean(scored.map(of))
  const f05 = scores.map(score => score.f05)
  const calls = scored.reduce((sum, score) => sum + score.calls, 0)
  const notRun = scored.reduce((sum, score) => sum + score.calls_not_run, 0)
  return {
    name,
    instances: new Set(scores.map(score => score.instance_id)).size,
    n: scores.length,
    scored: scored.length,
    unanswered: scored.filter(score => !score.answered).length,
    f05_mean: mean(f05),
    f05_median: quantile(f05, 0.5),
    precision: mean(scores.map(score => score.precision)),
    recall: mean(scores.map(score => score.recall)),
    share_08: mean(f05.map(f => (f >= 0.8 ? 1 : 0))),
    turns: over(score => score.turns),
    calls: over(score => score.calls),
    calls_per_turn: over(score => score.calls_per_turn),
    not_run: calls === 0 ? null : notRun / calls,
    tokens: over(score => score.tokens),
    timing: { seconds: mean(scored.flatMap(score => score.timing?.seconds ?? [])) },
  }
}

/** The rule set that all scores were made with. Throws FatalError E_GOLD_RULES when there are two: numbers of different rules do not compare. */
export function commonRules(scores: readonly Score[]): string {
  const rules = [...new Set(scores.map(score => score.gold_rules))].sort()
  if (rules.length > 1)
    throw new FatalError(
      'E_GOLD_RULES',
      `the scores are made with different gold rules, ${rules.join(' and ')}: make all targets with the same cg-mine gold options`,
    )
  return rules[0] ?? ''
}
