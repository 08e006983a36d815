import t from 'tap'
import { kinds } from './retrieval/chat.js'

const counts = [77, 24, 23, 8]

for (const [k, kind] of kinds.entries())
  t.test(`${kind.name}: the fixture model's text as the reference has it`, async t => {
    const cases = await kind.find('fixtures/golden/retrieval')
    t.equal(cases.length, counts[k])
    const failures: string[] = []
    for (const c of cases) {
      const result = await kind.run(c)
      if (result.status !== 'passed') failures.push(`${c.name}: ${result.message}`)
    }
    t.same(failures, [])
  })

t.test('a wrong id is seen, and a family whose tokenizer is not here is no failure', async t => {
  const [encode] = kinds
  const one = (await encode!.find('fixtures/golden/retrieval'))[5] as { name: string; value: { ids: number[] } }
  t.match(await encode!.run({ ...one, value: { ...one.value, ids: [...one.value.ids, 1] } } as never), {
    status: 'failed',
    message: /^ids: /,
  })
  const elsewhere = { ...one, about: { package: '@nobody/tokenizer-none' } }
  t.match(await encode!.run(elsewhere), { status: 'not built', message: /@nobody\/tokenizer-none not found/ })
})
