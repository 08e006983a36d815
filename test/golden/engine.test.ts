import t from 'tap'
import { runKinds } from './run-kinds.js'

const found: string[] = []
for await (const kind of runKinds('fixtures/golden/engine')) {
  found.push(kind.name)
  t.test(kind.name, async t => {
    t.ok(kind.passed > 0)
    t.equal(kind.notBuilt, 0)
    t.strictSame(kind.messages, [])
    for (const { what, error, bound } of kind.worst) t.ok(error <= bound, `${what}: ${error} is at most ${bound}`)
  })
}
t.strictSame(found, [
  'forward',
  'rope',
  'lora',
  'train/optimizer',
  'losses',
  'losses/accumulation',
  'losses/advantages',
  'losses/end-to-end',
  'sampling',
  'checkpoint-read',
])
