import t from 'tap'
import { fuzz } from '../fuzz/fuzz.js'
import { targetNames } from '../fuzz/targets.js'

const seconds = Number(process.env.CG_FUZZ_SECONDS ?? 600)
const seed = Number(process.env.CG_FUZZ_SEED ?? Math.floor(Date.now() / 1000))
t.setTimeout((seconds * targetNames.length + 600) * 1000)

for (const target of targetNames)
  t.test(`${target}, ${seconds} s, seed ${seed}`, async t => {
    const { executions, outcomes, finding } = await fuzz(target, { seconds, seed })
    t.comment(`${executions} executions, ${outcomes} outcomes`)
    t.equal(finding, undefined)
    t.ok(executions > 0)
  })
