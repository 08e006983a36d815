import { existsSync } from 'node:fs'
import { runKinds } from './run-kinds.js'

/**
 * `npm run golden -- DIR`: compares with reference data and prints, per kind, how many cases passed, failed and are not built, and the worst deviation of every
 * quantity beside its bound. Exit 1 when a case failed or there was none.
 */
const dir = process.argv[2]
if (dir === undefined || !existsSync(dir)) {
  process.stderr.write(`usage: npm run golden -- DIR${dir === undefined ? '' : `\ngolden: ${dir}: no such directory`}\n`)
  process.exitCode = 2
} else {
  let cases = 0
  let failed = 0
  for await (const kind of runKinds(dir)) {
    cases += kind.passed + kind.failed + kind.notBuilt
    failed += kind.failed
    process.stdout.write(`${kind.name.padEnd(22)} ${kind.passed} passed, ${kind.failed} failed, ${kind.notBuilt} not built\n`)
    for (const { what, error, bound } of kind.worst)
      process.stdout.write(`  ${what.padEnd(36)} ${error.toExponential(1).padStart(8)}  bound ${bound.toExponential(1)}\n`)
    for (const message of kind.messages.slice(0, 5)) process.stdout.write(`  failed: ${message}\n`)
    if (kind.messages.length > 5) process.stdout.write(`  and ${kind.messages.length - 5} more\n`)
  }
  process.stdout.write(cases === 0 ? `no case found in ${dir}\n` : `${cases} cases, ${failed} failed\n`)
  process.exitCode = cases === 0 || failed > 0 ? 1 : 0
}
