import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { plainNode, run, scratch } from '../pipeline/process.js'
import { failingDisk, noFailingDisk } from './disk.js'
import { listing, timeless } from './listing.js'
import { preparing, searching } from './streaming.js'
import { publishing } from './training.js'

t.setTimeout(280_000)

const hours = 3600

t.test('the clock that the tests move is the one that Node reads', { skip: noFailingDisk }, async t => {
  const { dir } = scratch(t)
  const { stdout } = spawnSync(plainNode[0], [...plainNode.slice(1), '-p', 'Date.now()'], {
    env: { ...process.env, ...failingDisk({ under: dir, shift: 1000 * hours }) },
    encoding: 'utf8',
  })
  t.ok(Number(stdout) - Date.now() > 999 * hours * 1000, stdout)
})

t.test('training does not care when the clock jumps', { skip: noFailingDisk }, async t => {
  const { dir } = scratch(t)
  const train = (name: string, env = {}) => run(publishing.script, publishing.args(join(dir, name)), { input: publishing.input!, env })
  spawnSync('mkdir', [join(dir, 'still'), join(dir, 'ahead'), join(dir, 'back')])
  const still = await train('still')
  t.equal(still.status, 0, still.stderr)
  for (const [name, shift] of [
    ['ahead', 40 * 24 * hours],
    ['back', -40 * 24 * hours],
  ] as const) {
    const under = join(dir, name)
    const jumped = await train(name, failingDisk({ under, shift, after: 60 }))
    t.equal(jumped.status, 0, jumped.stderr)
    t.strictSame(listing(under, publishing.leave), listing(join(dir, 'still'), publishing.leave), `${name}: the same tensors and records`)
    t.match(JSON.parse(readFileSync(join(under, 'run/trainer.json'), 'utf8')), { state: 'done' })
    t.notMatch(jumped.stderr, /-\d+\.\d s$/m, 'no negative time')
  }
})

t.test('worktrees, leases and the cache do not care either', { skip: noFailingDisk }, async t => {
  const { dir } = scratch(t)
  const [prepare, search] = [preparing(join(dir, 'mirror')), searching(join(dir, 'mirror2'))]
  const env = { ...search.env!(dir) }
  const prepared = await run(prepare.script, prepare.args(dir), { input: prepare.input! })
  const rollouts = async (shift: number, extra: string[] = []) => {
    const disk = failingDisk({ under: dir, shift })
    const { status, stderr } = await run(search.script, [...search.args(dir), ...extra], {
      input: prepared.stdout,
      env: { ...env, ...disk },
    })
    t.equal(status, 0, stderr)
    return { text: timeless(readFileSync(join(dir, 'out.ndjson'), 'utf8')), stderr }
  }
  const first = await rollouts(0)
  const ahead = await rollouts(365 * 24 * hours)
  const back = await rollouts(-365 * 24 * hours)
  const plain = await rollouts(-365 * 24 * hours, ['--refresh'])
  for (const { text } of [ahead, back, plain]) t.equal(text, first.text)
  for (const { stderr } of [ahead, back]) t.match(stderr, /2 in, 2 out, 2 cached/)
})
