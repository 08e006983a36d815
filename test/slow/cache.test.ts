import t from 'tap'
import { storm } from '../pipeline/cache-storm.js'
import { scratch } from '../pipeline/process.js'

const rounds = Number(process.env.CG_CACHE_ROUNDS ?? 40)
t.setTimeout(rounds * 120_000)

t.test(`${rounds} times one of several processes is killed while they share a cache`, async t => {
  const { dir } = scratch(t)
  for (let round = 0; round < rounds; round++) t.same(await storm(dir, round), [], `round ${round}`)
})
