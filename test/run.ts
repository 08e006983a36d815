import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { globby } from 'globby'
import { countTap } from './tap.js'

/**
 * Runs every test there is, native ones first, and prints the total as the last line: `N passed, N failed`.
 *
 * Test files are found by their sources, so that what an earlier build left behind is not run. `--slow` runs test/slow instead; `--jobs N` files at once;
 * arguments are patterns of sources to run instead of all (`test/unit/cli/*.test.ts`), without native ones.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: 'string', default: '2' }, slow: { type: 'boolean', default: false } },
})
const sources = await globby(
  positionals.length > 0 ? positionals : values.slow ? 'test/slow/**/*.test.ts' : ['test/**/*.test.ts', '!test/slow'],
)
const files = sources.sort().map(source => `build/js/${source.replace(/\.ts$/, '.js')}`)
const total = { passed: 0, failed: 0 }

if (!values.slow && positionals.length === 0 && existsSync('build/Release/native-test'))
  await suite('native-test', 'build/Release/native-test', [])
await suite('tap', 'node_modules/.bin/tap', [
  'run',
  '--disable-coverage',
  '--allow-empty-coverage',
  `--jobs=${values.jobs}`,
  '--timeout=300',
  '--reporter=tap',
  ...files,
])
process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`)
process.exitCode = total.failed === 0 ? 0 : 1

/** Runs a program that writes TAP, shows a line per file and all about files that failed, and adds to the total. */
async function suite(name: string, program: string, args: string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  let shown = 0
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    shown = showFiles(text, shown)
  })
  const status = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  const count = countTap(text)
  if (status !== 0 && count.failed === 0) {
    count.failed = 1
    count.failures.push(`${name} ended with status ${status}`)
  }
  for (const failure of count.failures) process.stdout.write(`failed: ${failure}\n`)
  process.stdout.write(`${name}: ${count.passed} passed, ${count.failed} failed\n`)
  total.passed += count.passed
  total.failed += count.failed
}

/** Prints the results of outermost tests that are complete in `text` from `from` on; of a failed one everything. Returns the place after them. */
function showFiles(text: string, from: number): number {
  const result = /^(not )?ok \d+.*\n/gm
  result.lastIndex = from
  for (let found = result.exec(text); found; found = result.exec(text)) {
    process.stdout.write(found[1] ? text.slice(from, result.lastIndex) : found[0].replace(/^ok \d+ - build\/js\//, '  '))
    from = result.lastIndex
  }
  return from
}
