import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { safetensorsCorpus, safetensorsWords } from './safetensors-inputs.js'
import { must, outline, type Target } from './target.js'

/** native/test/fuzz_safetensors.cpp, built with AddressSanitizer and UndefinedBehaviorSanitizer. */
const program = resolve('build/fuzz/fuzz-safetensors')
const dir = mkdtempSync(join(tmpdir(), 'cg-fuzz-'))
const file = join(dir, 'x.safetensors')

type Reader = { child: ChildProcess; ask(): Promise<string> }
let reader: Reader | undefined

/** The reader without Node around it: a byte read outside, an overflow or undefined behaviour ends the program, which says what it was. */
const target: Target = {
  name: 'safetensors-asan',
  words: safetensorsWords,
  maxBytes: 1 << 16,
  corpus: safetensorsCorpus,
  async check(input) {
    reader ??= start()
    writeFileSync(file, input)
    const answer = await reader.ask()
    must(/^(read|E_CHECKPOINT) /.test(answer), answer)
    return outline(answer.replace(file, ''))
  },
  close() {
    reader?.child.stdin?.end()
    rmSync(dir, { recursive: true, force: true })
  },
}
export default target

/** One line, the file, brings one answer; the end of the program is an answer too. */
function start(): Reader {
  const child = spawn(program, [], { stdio: 'pipe' })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text
  })
  child.stdin.on('error', () => {})
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'close').then(([status, signal]) => {
    reader = undefined
    return `the reader ended with ${signal ?? status}: ${said
      .split('\n')
      .filter(line => /ERROR|runtime error|#[0-5] /.test(line))
      .slice(0, 6)
      .join('\n')}`
  })
  return {
    child,
    ask: () => {
      child.stdin.write(`${file}\n`)
      return Promise.race([once(lines, 'line').then(([line]) => line as string), ended])
    },
  }
}
