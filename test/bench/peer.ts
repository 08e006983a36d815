import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A program of a peer that is loaded and waits: one JSON line in, one out. */
export type Peer = {
  /** Its first line: at least who it is, with the version. */
  hello: { name: string } & Record<string, unknown>
  ask<Answer>(request: object): Promise<Answer>
  close(): Promise<void>
}

/** Everything that peers parallelise with is held to one thread, and nothing is fetched. */
const environment = {
  ...process.env,
  OMP_NUM_THREADS: '1',
  MKL_NUM_THREADS: '1',
  OPENBLAS_NUM_THREADS: '1',
  TOKENIZERS_PARALLELISM: 'false',
  HF_HUB_OFFLINE: '1',
  PYTHONUNBUFFERED: '1',
}

/** Starts peers/SCRIPT. What it says on standard error is shown when it fails. Throws an Error with that when it ends before it answers. */
export async function openPeer(python: string, script: string, args: readonly string[]): Promise<Peer> {
  const child = spawn(python, [`test/bench/peers/${script}`, ...args], { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000)
  })
  child.stdin.on('error', () => {}) // it has ended: the read below says so
  const ended = new Promise<void>(resolve => child.on('close', () => resolve()))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  async function answer(): Promise<unknown> {
    const { value, done } = await lines.next()
    if (!done) return JSON.parse(value)
    await ended
    throw new Error(`${script} ended with status ${child.exitCode ?? child.signalCode}:\n${said}`)
  }

  return {
    hello: (await answer()) as Peer['hello'],
    async ask<Answer>(request: object) {
      child.stdin.write(`${JSON.stringify(request)}\n`)
      return (await answer()) as Answer
    },
    async close() {
      child.stdin.end()
      await ended
    },
  }
}
