import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { TrainerFile } from '#cg/record/run-directory.js'
import { watchTrainer } from '#cg/rollout/trainer-watch.js'

function watched(t: Test) {
  const dir = t.testdir()
  let now = 1000
  const warnings: string[] = []
  const watch = watchTrainer(dir, {
    clock: { now: () => now, sleep: async () => {} },
    absentMs: 100_000,
    warn: message => warnings.push(message),
  })
  let beat = 0
  const write = (fields: Partial<TrainerFile> = {}) =>
    writeFileSync(
      join(dir, 'trainer.json'),
      JSON.stringify({ pid: process.pid, host: hostname(), start: '', state: 'training', seen: 0, beat: beat++, ...fields }),
    )
  return { watch, warnings, write, pass: (seconds: number) => (now += seconds * 1000) }
}

t.test('silence is counted from the last change, by this process’s time', async t => {
  const { watch, write, pass } = watched(t)
  pass(59)
  await watch.look()
  write()
  await watch.look()
  pass(59)
  await watch.look()
  write()
  pass(59)
  await watch.look()
  pass(59)
  await watch.look()
  pass(2)
  await t.rejects(watch.look(), { code: 'E_TRAINER', message: /nothing was heard of the trainer for 61 s/ })
})

t.test('a trainer that never comes, though one was here before, is waited for as long as was asked', async t => {
  const { watch, write, pass } = watched(t)
  write()
  await watch.look()
  pass(99)
  await watch.look()
  pass(1)
  await t.rejects(watch.look(), {
    code: 'E_NO_RUN',
    message: /no trainer has come for 100 s: start cg-train grpo --publish .*, or raise --wait/,
  })
})

t.test('failed, and done', async t => {
  const { watch, write } = watched(t)
  write({ state: 'failed' })
  await watch.look() // left by an earlier trainer: the new one is still to come
  write({ state: 'failed' })
  await t.rejects(watch.look(), { message: /the trainer failed/ })
  write({ state: 'done' })
  await t.rejects(watch.look(), { message: /the trainer is done/ })
})

t.test('a dead pid counts only if it was seen alive, and on this host', async t => {
  const dead = spawnSync(process.execPath, ['-e', '0']).pid
  const { watch, write } = watched(t)
  write({ pid: dead })
  await watch.look() // left by an earlier trainer: the new one is still to come
  write({ pid: dead, host: 'elsewhere' })
  await watch.look()

  const { spawn } = await import('node:child_process')
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  write({ pid: child.pid! })
  await watch.look()
  child.kill('SIGKILL')
  await new Promise(resolve => child.on('exit', resolve))
  await t.rejects(watch.look(), { message: /\(pid \d+\) is gone/ })
})

t.test('a barrier that is not seen while the trainer waits is warned of, once', async t => {
  const { watch, write, warnings, pass } = watched(t)
  watch.wrote(3)
  const wait = async (fields: Partial<TrainerFile>, seconds: number) => {
    write(fields)
    await watch.look()
    pass(seconds)
    write(fields)
    await watch.look()
  }
  await wait({ state: 'training', seen: 3 }, 40)
  t.same(warnings, [], 'it trains')
  await wait({ state: 'waiting', seen: 4 }, 40)
  t.same(warnings, [], 'it has seen it')
  watch.wrote(4)
  await wait({ state: 'waiting', seen: 4 }, 29)
  t.same(warnings, [], 'not yet')
  await wait({ state: 'waiting', seen: 4 }, 29)
  t.match(warnings, [/has not seen step 4: something in the pipe buffers/])
  await wait({ state: 'waiting', seen: 4 }, 40)
  t.equal(warnings.length, 1)
})
