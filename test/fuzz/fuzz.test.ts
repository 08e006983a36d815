import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fuzz } from './fuzz.js'
import { keptInputs, targetNames } from './targets.js'

/** About a second each; `make check-slow` takes minutes. The reader with sanitizers is built there only. */
const inputs: Record<string, number> = {
  records: 400,
  patch: 1500,
  answer: 4000,
  calls: 2000,
  safetensors: 300,
  tokenizer: 300,
  'tokenizer-file': 300,
  cache: 30,
}

for (const target of targetNames.filter(name => name in inputs))
  t.test(target, async t => {
    const { executions, finding } = await fuzz(target, { inputs: inputs[target]!, seed: 1 })
    t.equal(finding, undefined)
    t.equal(executions, inputs[target])
  })

t.test('every kept input belongs to a target', async t => {
  for (const folder of readdirSync('fixtures/fuzz')) t.ok(targetNames.includes(folder), folder)
  t.ok(existsSync(join('fixtures/fuzz', 'records')))
  t.equal(keptInputs('safetensors-asan').length, keptInputs('safetensors').length)
})
