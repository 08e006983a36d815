import t from 'tap'
import { setScore } from '#cg/score/set-score.js'

const cases: [name: string, predicted: string, gold: string, beta: number, f: number][] = [
  ['both empty', '', '', 0.5, 1],
  ['nothing predicted', '', 'a', 0.5, 0],
  ['nothing to find', 'a', '', 0.5, 0],
  ['no overlap', 'a', 'b', 0.5, 0],
  ['exact', 'a b', 'b a', 0.5, 1],
  ['one of two found', 'a', 'a b', 0.5, 5 / 6], // P 1, R 1/2: 1.25 · ½ / (¼ + ½)
  ['one of two right', 'a b', 'a', 0.5, 5 / 9], // P 1/2, R 1: 1.25 · ½ / (⅛ + 1)
  ['repeats count once', 'a a b', 'a', 0.5, 5 / 9],
  ['beta 1 is F1', 'a b', 'a', 1, 2 / 3],
  ['beta 0 is precision', 'a b', 'a', 0, 1 / 2],
]

for (const [name, predicted, gold, beta, f] of cases)
  t.test(name, async t => t.ok(Math.abs(setScore(words(predicted), words(gold), beta).f - f) < 1e-15))

t.test('precision and recall', async t => {
  const { precision, recall } = setScore(['a', 'b', 'c', 'd'], ['a', 'x'])
  t.equal(precision, 1 / 4)
  t.equal(recall, 1 / 2)
})

t.test('an empty answer to an empty target is perfect, though nothing in it is right', async t =>
  t.same(setScore([], []), { precision: 0, recall: 0, f: 1 }),
)

t.test('precision weighs more than recall at beta 0.5', async t => t.ok(setScore(['a'], ['a', 'b']).f > setScore(['a', 'b'], ['a']).f))

t.test('at beta 1 prediction and gold can change places', async t => {
  const [p, g] = [words('a b c'), words('b c d e')]
  t.equal(setScore(p, g, 1).f, setScore(g, p, 1).f)
})

t.test('F lies between precision and recall', async t => {
  for (let hits = 1; hits <= 4; hits++)
    for (let predicted = hits; predicted <= 6; predicted++)
      for (let gold = hits; gold <= 6; gold++) {
        const { precision, recall, f } = setScore(
          numbered(predicted),
          numbered(gold).map((_, n) => String(n + predicted - hits)),
        )
        t.ok(f >= Math.min(precision, recall) - 1e-12 && f <= Math.max(precision, recall) + 1e-12, `${hits} of ${predicted} and ${gold}`)
      }
})

function words(s: string) {
  return s.split(' ').filter(Boolean)
}

function numbered(n: number) {
  return Array.from({ length: n }, (_, i) => String(i))
}
