import { parseArgs } from 'node:util'
import { fuzz } from './fuzz.js'
import { targetNames } from './targets.js'

/**
 * node build/js/test/fuzz/run.js TARGET --seconds N [--seed S]
 * node build/js/test/fuzz/run.js TARGET --inputs N [--seed S]     the same inputs each time
 * node build/js/test/fuzz/run.js TARGET --input FILE              one input again
 *
 * Prints what was tried; on a finding what is wrong, the smallest input found for it, and how to have it again, and ends with status 1.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string' }, inputs: { type: 'string' }, input: { type: 'string' }, seed: { type: 'string', default: '0' } },
})
const [target] = positionals
if (target === undefined || !targetNames.includes(target)) {
  process.stderr.write(`usage: run.js TARGET --seconds N | --inputs N [--seed S] | --input FILE; targets: ${targetNames.join(' ')}\n`)
  process.exit(2)
}
const seed = Number(values.seed)
const began = performance.now()
let said = began
const work =
  values.input !== undefined
    ? { input: values.input }
    : values.inputs !== undefined
      ? { inputs: Number(values.inputs), seed }
      : { seconds: Number(values.seconds ?? 60), seed }
const { executions, outcomes, finding } = await fuzz(target, work, ({ executions, outcomes }) => {
  if (performance.now() - said < 60_000) return
  said = performance.now()
  process.stderr.write(`${target}: ${executions} executions, ${outcomes} outcomes\n`)
})
const seconds = (performance.now() - began) / 1000
process.stdout.write(`${target}: ${executions} executions, ${outcomes} different outcomes, ${seconds.toFixed(1)} s, seed ${seed}\n`)
if (finding) {
  process.stdout.write(
    `${finding.words}\ninput: ${finding.file}\nagain: node build/js/test/fuzz/run.js ${target} --input ${finding.file}\n`,
  )
  process.exitCode = 1
}
