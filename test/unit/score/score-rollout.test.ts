import t from 'tap'
import { scoreRollout } from '#cg/score/score-rollout.js'
import { rollout, target } from './example-rollout.js'

t.test('files, ranges and calls per turn', async t => {
  const gold = target('a.py b.py', 'a.py:1-4 b.py:7-8')
  const score = scoreRollout(rollout({ calls: [3, 0], files: ['a.py'], ranges: ['a.py:1-4'] }), gold)
  t.ok(Math.abs(score.file.f - 5 / 6) < 1e-15)
  t.equal(score.range.recall, 1 / 2)
  t.equal(score.callsPerTurn, 1.5)
})

t.test('paths are compared in their plain form', async t =>
  t.equal(scoreRollout(rollout({ files: ['./src//cafe\u0301.py'] }), target('src/caf\u00e9.py')).file.f, 1),
)

t.test('without a valid answer nothing was predicted', async t => {
  for (const stop of ['no-call', 'turns', 'length', 'context', 'fault'] as const)
    t.equal(scoreRollout(rollout({ files: ['a.py'], ranges: ['a.py:1-4'], stop }), target('a.py', 'a.py:1-4')).file.f, 0, stop)
})

t.test('ranges in mined files are neither right nor wrong', async t => {
  const gold = target('a.py', 'a.py:1-4')
  gold.files.push({ path: 'm.py', weight: 0.7, source: 'mined' })
  t.equal(scoreRollout(rollout({ files: ['a.py', 'm.py'], ranges: ['a.py:1-4', './m.py:1-9'] }), gold).range.f, 1)
})

t.test('a file that is both patched and mined has ranges', async t => {
  const gold = target('a.py', 'a.py:1-4')
  gold.files[0]!.source = 'both'
  t.equal(scoreRollout(rollout({ ranges: ['a.py:50-60'] }), gold).range.f, 0)
})
