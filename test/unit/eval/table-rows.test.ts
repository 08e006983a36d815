import t from 'tap'
import { mean, quantile } from '#cg/eval/averages.js'
import { commonRules, tableRows } from '#cg/eval/table-rows.js'
import { tableText } from '#cg/eval/table-text.js'
import type { Table } from '#cg/record/schema.js'
import { tableRow } from '#cg/record/schema.js'
import { score, scores } from './example-score.js'

t.test('means, medians and shares over all rollouts', async t => {
  const [row] = tableRows(scores('p', 0, 0.5, 0.8, 1))
  t.match(row, { name: 'p', instances: 4, n: 4, scored: 4, unanswered: 0, f05_median: 0.65, share_08: 0.5 })
  t.equal(row!.f05_mean, 0.575)
  tableRow.parse(row)
})

t.test('a rollout that failed is in n and counts as 0, but has no part in turns', async t => {
  const failed = score({
    instance_id: 'i2',
    f05: 0,
    precision: 0,
    recall: 0,
    fault: true,
    answered: false,
    turns: 0,
    calls: 0,
    tokens: 0,
    calls_per_turn: 0,
  })
  t.match(tableRows([score(), failed])[0], {
    n: 2,
    scored: 1,
    f05_mean: 0.5,
    precision: 0.5,
    turns: 2,
    calls: 4,
    calls_per_turn: 2,
    tokens: 100,
  })
})

t.test('no answer', async t => t.match(tableRows([score({ answered: false, f05: 0 })])[0], { n: 1, scored: 1, unanswered: 1, f05_mean: 0 }))

t.test('calls that were not run, as a share of all calls', async t => {
  t.equal(tableRows([score({ calls: 10, calls_not_run: 2 }), score({ calls: 2 })])[0]!.not_run, 2 / 12)
  t.equal(tableRows([score({ calls: 0 })])[0]!.not_run, null)
})

t.test('several samples of an instance', async t =>
  t.match(tableRows([score(), score({ rollout: 'q', f05: 0 })])[0], { instances: 1, n: 2, f05_mean: 0.5 }),
)

t.test('seconds stand under timing, where they are known', async t => {
  t.equal(tableRows([score({ timing: { seconds: 1 } }), score({ timing: { seconds: 2 } })])[0]!.timing!.seconds, 1.5)
  t.equal(tableRows([score()])[0]!.timing!.seconds, null)
})

t.test('a breakdown follows its row', async t => {
  const rows = tableRows(
    [score({ issue_kind: 'words', f05: 0 }), score({ issue_kind: 'error' }), score(), ...scores('q', 0.5)],
    'issue_kind',
  )
  t.same(
    rows.map(row => [row.name, row.by?.value, row.n]),
    [
      ['p', undefined, 3],
      ['p', '(none)', 1],
      ['p', 'error', 1],
      ['p', 'words', 1],
      ['q', undefined, 1],
      ['q', '(none)', 1],
    ],
  )
  t.equal(rows[3]!.f05_mean, 0)
})

t.test('scores of two rule sets are refused', async t => {
  t.equal(commonRules([score(), score()]), 'codegrep/1')
  t.throws(() => commonRules([score(), score({ gold_rules: 'a2agent/1' })]), {
    code: 'E_GOLD_RULES',
    message: 'the scores are made with different gold rules, a2agent/1 and codegrep/1: make all targets with the same cg-mine gold options',
  })
})

t.test('the table as text', async t => {
  const rows = tableRows(
    [
      score({ issue_kind: 'error', timing: { seconds: 0.25 } }),
      score({ name: 'bm25', f05: 0.5, turns: 1, calls: 0, calls_per_turn: 0, tokens: 0 }),
    ],
    'issue_kind',
  )
  const table: Table = { kind: 'table', v: 1, title: 'held-out', gold_rules: 'codegrep/1', rows }
  t.equal(
    tableText(table).join('\n'),
    `held-out, gold codegrep/1, by issue_kind

          scored   F0.5  median      P      R   F≥0.8  turns  calls/turn  not run  tokens  seconds
p            1/1  1.000   1.000  1.000  1.000  100.0%   2.00        2.00     0.0%     100     0.25
  error      1/1  1.000   1.000  1.000  1.000  100.0%   2.00        2.00     0.0%     100     0.25
bm25         1/1  0.500   0.500  1.000  1.000    0.0%   1.00        0.00        –       0        –
  (none)     1/1  0.500   0.500  1.000  1.000    0.0%   1.00        0.00        –       0        –`,
  )
})

t.test('averages', async t => {
  t.equal(mean([]), null)
  t.equal(mean([1, 2, 6]), 3)
  t.equal(quantile([], 0.5), null)
  t.equal(quantile([3, 1, 2], 0.5), 2)
  t.equal(quantile([4, 1, 2, 3], 0.5), 2.5)
  t.equal(quantile([10, 0], 0.25), 2.5)
})
