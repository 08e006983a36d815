import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { numbers } from '../native/setup.js'
import { plainNode } from '../pipeline/process.js'
import { textRollout } from '../unit/train/made-rollouts.js'

const kills = Number(process.env.KILLS ?? 50)
t.setTimeout(kills * 60_000)

/** A version under way, as the trainer names it until its rename. */
const unfinished = (run: string) => existsSync(run) && readdirSync(run).some(name => /^\.v\d+\.unfinished$/.test(name))

t.test(`kill -9 while a checkpoint is written, ${kills} times`, async t => {
  const dir = mkdtempSync(join(tmpdir(), 'cg-kill-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const next = numbers(4)
  const input = join(dir, 'rollouts.ndjson')
  writeFileSync(input, Array.from({ length: 12 }, (_, n) => `${JSON.stringify(textRollout(n))}\n`).join(''))
  const run = (name: string) => join(dir, name)
  const args = (name: string) => [
    ...['sft', '-q', '--full', '--model', 'fixtures/model', '--batch-size', '2', '--lr', '1e-4', '--steps', '6'],
    ...['--publish', run(name), '--resume', '--out', run(`${name}-out`), input],
  ]
  const once = (name: string) =>
    execFileSync(plainNode[0], [...plainNode.slice(1), 'bin/cg-train', ...args(name)], { stdio: ['ignore', 'ignore', 'inherit'] })
  once('whole')
  const wanted = readFileSync(join(run('whole-out'), 'model.safetensors'))
  let hit = 0
  for (let n = 0; n < kills; n++) {
    for (const name of ['killed', 'killed-out']) rmSync(run(name), { recursive: true, force: true })
    const skip = Math.floor(next() * 5)
    const child = spawn(plainNode[0], [...plainNode.slice(1), 'bin/cg-train', ...args('killed')], { stdio: 'ignore', detached: true })
    const ended = new Promise(resolve => child.once('exit', resolve))
    for (let seen = 0, before = false, over = false; seen <= skip && !over; ) {
      const now = unfinished(run('killed'))
      if (now && !before) seen++
      before = now
      if (seen <= skip) over = (await Promise.race([ended.then(() => true), sleep(1)])) === true
    }
    await sleep(next() * 12)
    if (unfinished(run('killed'))) hit++
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
    await ended
    once('killed')
    t.ok(
      readFileSync(join(run('killed-out'), 'model.safetensors')).equals(wanted),
      `kill ${n}: the resumed run gives the uninterrupted one's bytes`,
    )
    t.notOk(unfinished(run('killed')), 'nothing unfinished stays')
  }
  t.comment(`${hit} of ${kills} kills found a version half written`)
  t.ok(hit > kills / 3)
})
