/**
 * Runs the benchmarks, one after the other: `make bench`, or `make bench ONLY=NAME` for one.
 *
 * Each prints the CPU's name, its shapes and its figures; where there is a peer, the ratio to it from the same run.
 */
import { execa } from 'execa'

const benches: Record<string, string[]> = {
  reference: ['build/Release/native-bench', '--only', 'reference'],
  tools: [process.execPath, 'build/js/test/bench/tools.js'],
}

const only = process.argv[2]
if (only !== undefined && !Object.hasOwn(benches, only)) {
  process.stderr.write(`bench: no benchmark is called ${only}: ${Object.keys(benches).join(', ')}\n`)
  process.exitCode = 2
} else {
  for (const [name, [program, ...args]] of Object.entries(benches))
    if (only === undefined || only === name) await execa(program!, args, { stdio: ['ignore', 'inherit', 'inherit'] })
}
