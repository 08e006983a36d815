import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import { openCache } from '#cg/store/sqlite-cache.js'
import type { Reply, Request } from './cache-peer.js'
import { closed, keyOf, keys, madeValue, workOn } from './cache-values.js'
import { damage, parts } from './damage.js'
import type { Target } from './target.js'

const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'cg-fuzz-cache-'))
let rounds = 0
let peer: { child: ChildProcess; ended: Promise<[Reply]> } | undefined

const target: Target = {
  name: 'cache',
  words: [],
  maxBytes: 64,
  /** The first byte says how, the rest is damage (damage.ts): every act on every file. */
  corpus: () =>
    Array.from({ length: 144 }, (_, n) =>
      Buffer.of(n >> 1, n % 3, Math.floor(n / 3) % 12, (n * 53) % 256, 17, (n * 7) % 256, (n * 31) % 256),
    ),

  /**
   * Bytes of a real cache are damaged: before it is opened, while this process has it open, or while another one has. Whatever comes out then is what was put
   * under its key, or nothing, or E_CACHE; and once more when everything was closed and is opened anew.
   */
  async check(input) {
    const [how = 0] = input
    const dir = join(root, String(rounds++))
    const file = join(dir, 'cache.db')
    mkdirSync(dir)
    try {
      const from = bases()[how % 2]!
      for (const part of parts) if (existsSync(from + part)) copyFileSync(from + part, file + part)
      const mode = (how >> 1) % 3
      const spoil = () => damage(file, input.subarray(1), bases(), mode > 0)
      const outcomes: string[] = []
      let cache = openCache({ file, patienceMs: 3000 })
      if (mode === 1) outcomes.push(workOn(cache, 3))
      if (mode === 2) outcomes.push(await ask({ file, turn: 4, close: false }))
      spoil()
      outcomes.push(workOn(cache, 5))
      if (mode === 2) outcomes.push(await ask({ file, turn: 6, close: true }), workOn(cache, 7))
      outcomes.push(closed(cache))
      cache = openCache({ file, patienceMs: 3000 })
      outcomes.push(workOn(cache, 8), workOn(cache, 9), closed(cache))
      return `${mode} ${outcomes}`
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
  async close() {
    peer?.child.disconnect()
    rmSync(root, { recursive: true, force: true })
  },
}
export default target

async function ask(request: Request): Promise<string> {
  peer ??= startPeer()
  peer.child.send(request)
  const [{ outcome, wrong }] = (await Promise.race([once(peer.child, 'message'), peer.ended])) as [Reply]
  if (wrong !== undefined) {
    peer.child.kill()
    peer = undefined
    throw new Error(wrong)
  }
  return outcome
}

function startPeer() {
  const child = fork(resolve('build/js/test/fuzz/cache-peer.js'), { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } })
  const ended = once(child, 'exit').then(([status, signal]): [Reply] => [
    { outcome: '', wrong: `the other process ended with ${signal ?? status}` },
  ])
  return { child, ended }
}

let made: string[] | undefined

/**
 * The caches to damage and to take pieces from: one closed in order, one with commits in its log as a killed process leaves it, one with other values under the
 * same keys, and a database of another program.
 */
function bases(): string[] {
  if (made) return made
  const place = (name: string) => join(root, name)
  const fill = (file: string, turns: number[]) => {
    const cache = openCache({ file })
    for (const turn of turns) {
      for (let n = 0; n < keys; n++) if (turn % 2 === 0 || n % 2 === 0) cache.put(keyOf(n), madeValue(n, turn))
      cache.flush()
    }
    return cache
  }
  fill(place('calm.db'), [0, 1]).close()
  fill(place('busy.db'), [0, 1]).close()
  const open = fill(place('busy.db'), [2, 3])
  for (const part of parts) copyFileSync(place('busy.db') + part, place('killed.db') + part)
  open.close()
  fill(place('other.db'), [20, 21]).close()
  const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Database
  const mail = new Sqlite(place('mail.db'))
  mail.pragma('journal_mode = WAL')
  mail.exec(`CREATE TABLE mail (body TEXT); INSERT INTO mail VALUES ('${'x'.repeat(20_000)}')`)
  for (const part of parts) copyFileSync(place('mail.db') + part, place('foreign.db') + part)
  mail.close()
  made = ['calm.db', 'killed.db', 'other.db', 'foreign.db'].map(place)
  return made
}
