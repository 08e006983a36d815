import { join } from 'node:path'
import t from 'tap'
import command from '#cg/cli/reward.js'
import { type Example, rollout } from '../unit/score/example-rollout.js'
import { inProcess } from './in-process.js'
import { records, run, scratch } from './process.js'

const lines = (...examples: Example[]) => examples.map(example => `${JSON.stringify(rollout(example))}\n`).join('')
const barrier = `${JSON.stringify({ kind: 'barrier', v: 1, step: 0, version: 0, groups: 1, digest: '0'.repeat(64) })}\n`
const reward = (input: string, ...args: string[]) => inProcess(command, ['--no-cache', ...args], input)

/** A group of two, one right and one wrong, c̄ 1. */
const pair = (group: string, ...files: [string, string]): Example[] =>
  files.map((file, sample) => ({ instance: group, group, size: 2, sample, files: [file] }))

t.test('rewards, advantages and weights, and foreign fields stay', async t => {
  const input = lines({ ...pair('g', 'a.py', 'b.py')[0], more: { mark: 'kept', reward: 9, weights: [9] } }, pair('g', 'a.py', 'b.py')[1]!)
  const { stdout, stderr, status } = await run('bin/cg-reward', ['--no-run', '--no-cache', '--eps=0', '--std-ddof=0'], { input })
  t.equal(status, 0)
  t.match(records(stdout), [
    { mark: 'kept', reward: 1, advantage: 0.5, weights: [Math.exp(0.75), Math.exp(0.75)] },
    { reward: 0, advantage: -0.5 },
  ])
  t.match(stderr, /cg-reward: 2 in, 2 out, 0 cached, 0 faults/)
})

t.test('a group of equal rewards is counted and has advantage 0', async t => {
  const { records, said } = await reward(lines(...pair('g', 'a.py', 'b.py'), ...pair('h', 'a.py', 'a.py')))
  t.same(
    records.map(record => Math.sign(record.advantage as number)),
    [1, -1, 0, 0],
  )
  t.match(said, '1 of 2 groups have a single scored rollout or equal rewards: advantage 0, nothing to learn from them')
})

t.test('a rollout that failed keeps no reward of an earlier run', async t => {
  const failed: Example = { group: 'g', size: 3, sample: 2, stop: 'fault', calls: [], files: [], more: { reward: 1, weights: [] } }
  const { records } = await reward(lines(...pair('g', 'a.py', 'b.py').map(example => ({ ...example, size: 3 })), failed))
  const [, , last] = records
  t.equal(last!.advantage, 0)
  t.notOk('reward' in last! || 'weights' in last!)
})

t.test('--std batch takes the deviation of what stands before each barrier', async t => {
  const input = lines(...pair('g', 'a.py', 'b.py'), ...pair('h', 'a.py', 'a.py')) + barrier + lines(...pair('k', 'a.py', 'b.py'))
  const { records } = await reward(input, '--std=batch', '--eps=0', '--std-ddof=0', '--scheme=codegrep-v1')
  const advantages = records.map(record => (record.kind === 'barrier' ? '|' : (record.advantage as number)))
  // v1 gives ½(F + F_lr): F_lr is 1 for no range of none, so rewards are 1 and ½; before the barrier 1 ½ 1 1: mean 7/8, deviation √3/8
  const d = Math.sqrt(3) / 8
  near(t, advantages.slice(0, 4) as number[], [0.25 / d, -0.25 / d, 0, 0])
  t.equal(advantages[4], '|')
  near(t, advantages.slice(5) as number[], [1, -1])
})

t.test('the options of the group arithmetic', async t => {
  const input = lines(...pair('g', 'a.py', 'b.py'))
  const advantages = async (...args: string[]) => (await reward(input, ...args)).records.map(record => record.advantage as number)
  near(t, await advantages('--std=none'), [0.25, -0.25])
  near(t, await advantages('--baseline=loo'), [0.5, -0.5])
  near(t, await advantages('--baseline=loo', '--std=none'), [0.5, -0.5])
  near(t, await advantages('--count-turns=exploring', '--std=none'), [0.5 * Math.SQRT1_2, -0.5 * Math.SQRT1_2])
})

t.test('leave one out divides by nothing', async t => {
  const { stderr, status } = await run('bin/cg-reward', ['--no-run', '--no-cache', '--baseline=loo', '--std=group'])
  t.equal(status, 2)
  t.match(stderr, 'cg-reward: --baseline loo is defined without a standard deviation: leave out --std group')
})

t.test('a rollout without target', async t => {
  const input = lines(...pair('g', 'a.py', 'b.py'), { instance: 'i9', target: null }, ...pair('h', 'b.py', 'a.py'))
  const stopped = await reward(input)
  t.equal(stopped.records.length, 2, 'what was done is written')
  t.match(stopped.said, '-:3: rollout of i9 has no target to score against: run its instances through cg-mine gold first')

  const went = await run('bin/cg-reward', ['--no-run', '--no-cache', '-k'], { input })
  t.equal(went.status, 3)
  t.match(
    records(went.stdout).map(record => record.kind),
    ['rollout', 'rollout', 'fault', 'rollout', 'rollout'],
  )
  t.match(records(went.stdout)[2], { code: 'E_TARGET', of: 'i9/g/0', stage: 'reward' })
})

t.test('an unknown scheme', async t =>
  t.rejects(reward('', '--scheme=codegrep-v4'), /--scheme: 'codegrep-v4' is none of codegrep-v1, codegrep-v2, codegrep-v3/),
)

t.test('a hit gives the bytes of a miss, and other answers are no hit', async t => {
  const { dir } = scratch(t)
  const cached = (input: string, ...args: string[]) => inProcess(command, ['--cache', join(dir, 'cache.db'), ...args], input)
  const input = lines(...pair('g', 'a.py', 'b.py'), ...pair('h', 'a.py', 'a.py'))
  const miss = await cached(input)
  const hit = await cached(input)
  t.same(hit.lines, miss.lines)
  t.equal(hit.said, miss.said)
  t.equal(miss.cached, 0)
  t.equal(hit.cached, 4)
  t.equal((await cached(input, '--eps=1')).cached, 0)
  t.equal((await cached(lines(...pair('g', 'b.py', 'b.py')))).cached, 0)
  t.match(await cached(lines(...pair('g', 'b.py', 'a.py')), '--cache-only', '-k'), {
    records: [{ code: 'E_CACHE_MISS' }, { code: 'E_CACHE_MISS' }],
  })
})

function near(t: { ok(value: boolean, message: string): void }, actual: number[], expected: number[]) {
  t.ok(actual.length === expected.length && actual.every((a, n) => Math.abs(a - expected[n]!) < 2e-3), `${actual} is ${expected}`)
}
