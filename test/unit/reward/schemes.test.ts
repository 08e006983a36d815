import t from 'tap'
import { type SchemeName, schemes } from '#cg/reward/schemes.js'
import { turnWeight } from '#cg/reward/turn-weight.js'

const cases: [scheme: SchemeName, fFile: number, fRange: number, callsPerTurn: number, reward: number, scale: number][] = [
  ['codegrep-v1', 1, 0, 0, 0.5, 1], // v1 has no gate
  ['codegrep-v1', 1, 1, 4, 1, 1],
  ['codegrep-v1', 1, 1, 8, 0.5, 1], // c̄/4 = 2 halves it
  ['codegrep-v1', 1, 1, 2, 1, 1],
  ['codegrep-v2', 1, 0.5, 0, 0, 0],
  ['codegrep-v2', 1, 0.5, 1, 0.75, 0.5], // √¼
  ['codegrep-v2', 1, 0.5, 8, 0.75, 1],
  ['codegrep-v3', 0.6, 1, 0, 0, 0],
  ['codegrep-v3', 0.6, 1, 1, 0.6, 0.5],
  ['codegrep-v3', 0.6, 0, 4, 0.6, 1],
  ['codegrep-v3', 0.6, 0, 40, 0.6, 1],
]

for (const [name, fFile, fRange, callsPerTurn, reward, scale] of cases)
  t.test(`${name} at F ${fFile}, F_lr ${fRange}, c̄ ${callsPerTurn}`, async t => {
    const scores = { fFile, fRange, callsPerTurn }
    t.equal(schemes[name].reward(scores), reward)
    t.equal(schemes[name].advantageScale(scores), scale)
  })

t.test('the scale keeps the sign, never enlarges, and grows up to c̄ = 4', async t => {
  let before = -1
  for (let c = 0; c <= 8; c += 0.25) {
    const scale = schemes['codegrep-v3'].advantageScale({ fFile: 1, fRange: 1, callsPerTurn: c })
    t.ok(scale >= 0 && scale <= 1 && (scale > before || c > 4), `at ${c}`)
    before = scale
  }
})

t.test('turn weights', async t => {
  t.equal(turnWeight(0), 1)
  t.equal(turnWeight(0.5), Math.exp(0.75))
  t.equal(turnWeight(1), 3) // exp(1.5) is above 3
  t.equal(turnWeight(-2), 0.1) // exp(−3) is below 0.1
  t.equal(turnWeight(-100), 0.1)
})
