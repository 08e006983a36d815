import t from 'tap'
import { type LineRange, type RangeMatch, rangeScore } from '#cg/score/range-score.js'

const cases: [name: string, predicted: string, gold: string, match: RangeMatch, hits: number, scored: number][] = [
  ['half of the gold range is enough', 'a:1-2', 'a:1-4', 'coverage', 1, 1],
  ['less than half is not', 'a:1-1', 'a:1-4', 'coverage', 0, 1],
  ['a wide prediction covers all', 'a:1-100', 'a:50-51', 'coverage', 1, 1],
  ['but shares little of the union', 'a:1-100', 'a:50-51', 'jaccard', 0, 1],
  ['half of the union', 'a:1-2', 'a:1-4', 'jaccard', 1, 1],
  ['another file', 'b:1-4', 'a:1-4', 'coverage', 0, 1],
  ['touching is not sharing', 'a:5-8', 'a:1-4', 'coverage', 0, 1],
  ['a repeated prediction counts once', 'a:1-4 a:1-4', 'a:1-4', 'coverage', 1, 1],
  ['two predictions of one range: one pair', 'a:1-4 a:1-5', 'a:1-4', 'coverage', 1, 2],
  // the first prediction takes the first gold range it matches, though the second prediction matches no other
  ['greedy in prediction order', 'a:1-9 a:1-4', 'a:1-4 a:6-9', 'coverage', 1, 2],
  ['the other order pairs both', 'a:1-4 a:1-9', 'a:1-4 a:6-9', 'coverage', 2, 2],
]

for (const [name, predicted, gold, match, hits, scored] of cases)
  t.test(name, async t => {
    const score = rangeScore(ranges(predicted), ranges(gold), { match })
    t.equal(score.pairs.length, hits)
    t.equal(score.scored, scored)
    t.equal(score.precision, hits / scored)
    t.equal(score.recall, hits / ranges(gold).length)
  })

t.test('predictions in files that are gold through mining alone are dropped', async t => {
  const options = { minedOnly: new Set(['m']) }
  t.equal(rangeScore(ranges('a:1-4 m:1-9'), ranges('a:1-4'), options).f, 1)
  t.equal(rangeScore(ranges('a:1-4 m:1-9'), ranges('a:1-4')).precision, 1 / 2)
})

t.test('no range predicted and none to find', async t => t.equal(rangeScore([], []).f, 1))

t.test('one of two right, both found: F0.5 is 5/9', async t =>
  t.ok(Math.abs(rangeScore(ranges('a:1-4 b:1-4'), ranges('a:1-4')).f - 5 / 9) < 1e-15),
)

function ranges(text: string): LineRange[] {
  return text.split(' ').map(word => {
    const [path, lines] = word.split(':') as [string, string]
    const [start, end] = lines.split('-').map(Number) as [number, number]
    return { path, start, end }
  })
}
