import t from 'tap'
import type { GoldenKind } from './kind.js'
import { kinds as bm25 } from './retrieval/bm25.js'
import { kinds as diff } from './retrieval/diff.js'
import { kinds as scores } from './retrieval/scores.js'

const dir = 'fixtures/golden/retrieval'

/** How many cases are kept here: a kind that finds none, or fewer, compares nothing. */
const counts: Record<string, number> = {
  bm25: 11,
  'bm25/tokenizer': 94,
  'bm25/paths': 17,
  diff: 75,
  'diff/quoting': 20,
  'scores/sets': 40,
  'scores/ranges': 27,
  'scores/codegrep': 8,
}

const kinds: GoldenKind[] = [...bm25, ...diff, ...scores]
for (const kind of kinds.filter(kind => kind.name in counts))
  t.test(kind.name, async t => {
    const cases = await kind.find(dir)
    t.equal(cases.length, counts[kind.name], 'cases')
    for (const c of cases) {
      const result = await kind.run(c)
      t.equal(result.status === 'failed' ? result.message : result.status, 'passed', c.name)
    }
  })

t.test('every kind that is kept here is compared', async t =>
  t.same(
    Object.keys(counts).filter(name => !kinds.some(kind => kind.name === name)),
    [],
  ),
)

t.test('a wrong number is seen', async t => {
  const [c] = (await scores.find(kind => kind.name === 'scores/sets')!.find(dir)).slice(-1) as [{ name: string; F: { value: number } }]
  const kind = scores.find(kind => kind.name === 'scores/sets')!
  t.match(await kind.run({ ...c, F: { value: c.F.value + 1e-8 } } as never), { status: 'failed' })
})
