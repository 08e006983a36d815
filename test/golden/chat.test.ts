import t from 'tap'
import { kinds } from './retrieval/chat.js'

for (const kind of kinds)
  t.test(`${kind.name}: the fixture model's text as the reference has it`, async t => {
    const cases = await kind.find('fixtures/golden/retrieval')
    t.ok(cases.length >= 8)
    for (const c of cases) t.match(await kind.run(c), { status: 'passed' }, c.name)
  })

t.test('a family whose tokenizer is not here is not built, and not a failure', async t => {
  const [encode] = kinds
  const [one] = await encode!.find('fixtures/golden/retrieval')
  const elsewhere = { ...one!, about: { package: '@nobody/tokenizer-none' } }
  t.match(await encode!.run(elsewhere), { status: 'not built', message: /@nobody\/tokenizer-none not found/ })
})
