import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'

/**
 * Runs a script with a cache of its own in another process: `file`, `open(options)`, `key(n)`, `warnings` and `told()` (a line of standard input) are there;
 * what it says is a line.
 */
export function cacheProcess(file: string, script: string) {
  const head = `
    import { createInterface } from 'node:readline'
    import { openCache } from ${JSON.stringify(resolve('dist/store/sqlite-cache.js'))}
    const file = process.argv[1]
    const warnings = []
    const open = (options = {}) => openCache({ file, warn: message => warnings.push(message), ...options })
    const key = n => ({ stage: 'test', version: 1, n })
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    const told = () => lines.next()
    const say = line => console.log(line)
  `
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', `${head}${script}\nprocess.exit()`, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  let text = ''
  child.stdin!.on('error', () => {})
  child.stdout!.setEncoding('utf8').on('data', more => {
    text += more
  })
  return {
    child,
    tell: () => child.stdin!.write('\n'),
    /** Waits until it has said the line. */
    async said(line: string) {
      while (!text.split('\n').includes(line)) {
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it ended without saying ${line}: ${text}`)
        await Promise.race([once(child.stdout!, 'data'), once(child, 'close')])
      }
    },
    ended: once(child, 'close').then(([status]) => ({ status: status as number | null, lines: text.split('\n').filter(Boolean) })),
  }
}
