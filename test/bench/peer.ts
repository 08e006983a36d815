import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A program of a peer that is loaded and waits: one JSON line in, one out. */
export type Peer = {
  /** Of its first line: who it is, with the version. */
  name: string
  ask<Answer>(request: object): Promise<Answer>
}

/**
 * Everything that peers parallelise with is held to one thread, and nothing is fetched. glibc keeps what they free: giving every large tensor back to the system and
 * taking it anew costs PyTorch up to a quarter of a forward pass.
 */
const environment = {
  ...process.env,
  OMP_NUM_THREADS: '1',
  MKL_NUM_THREADS: '1',
  OPENBLAS_NUM_THREADS: '1',
  TOKENIZERS_PARALLELISM: 'false',
  HF_HUB_OFFLINE: '1',
  MALLOC_MMAP_MAX_: '0',
  MALLOC_TRIM_THRESHOLD_: `${2 ** 36}`,
}

/**
 * Starts peers/SCRIPT, lets `use` ask it, and ends it. What it says on standard error is shown when it fails: throws an Error with that where it ends before it has
 * answered.
 */
export async function withPeer<T>(python: string, script: string, args: readonly string[], use: (peer: Peer) => Promise<T>): Promise<T> {
  const child = spawn(python, [`test/bench/peers/${script}`, ...args], { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000)
  })
  child.stdin.on('error', () => {}) // it has ended: the read below says so
  const ended = new Promise<void>((resolve, reject) => child.on('error', reject).on('close', () => resolve()))
  ended.catch(() => {}) // told where it is waited for
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  async function answer(): Promise<unknown> {
    const { value, done } = await lines.next()
    if (!done) return JSON.parse(value)
    await ended
    throw new Error(`${script} ended with status ${child.exitCode ?? child.signalCode}:\n${said}`)
  }

  try {
    const { name } = (await answer()) as { name: string }
    return await use({
      name,
      async ask<Answer>(request: object) {
        child.stdin.write(`${JSON.stringify(request)}\n`)
        return (await answer()) as Answer
      },
    })
  } finally {
    child.stdin.end()
    await ended.catch(() => {})
  }
}
