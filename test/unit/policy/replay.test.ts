import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bm25Policy } from '#cg/policy/bm25.js'
import { replayPolicy } from '#cg/policy/replay.js'
import { runRollout } from '#cg/rollout/run-rollout.js'
import { sampleGroup } from '#cg/rollout/sample-group.js'
import { noCache } from '#cg/store/cache.js'
import { answer, block, saying, settings, task } from '../rollout/a-policy.js'
import { treeOf } from '../tools/a-tree.js'

const { tree, bare, commits } = await treeOf(t, {
  'lib/parse.py': 'def parse(line):\n    fails = True\n',
  'lib/other.py': 'x = 1\n',
  'lib/third.py': 'y = 2\n',
  'build/parse.py': 'parse fails parse fails\n',
  'notes.txt': 'parse fails parse fails\n',
})
const instance = { ...task, worktree: { commit: commits[0]!, tree: tree.id, bare } }
const sampler = {
  settings: settings(),
  limit: <T>(work: () => Promise<T>) => work(),
  cache: noCache,
  table: 'results' as const,
  openTree: async () => tree,
}
const place = { pass: 0, index: 0 }

t.test('replay says again what was said, and the tools run anew', async t => {
  const said = saying([request => block('grep', { pattern: `parse|${request.sample}` }), answer('lib/parse.py')])
  const { rollouts } = await sampleGroup({ ...sampler, policy: said, samples: 2 }, instance, place)
  const file = join(t.testdir(), 'old.ndjson')
  writeFileSync(file, rollouts.map(r => `${JSON.stringify(r)}\n`).join(''))
  const policy = await replayPolicy(file)
  t.match(policy.identity, { kind: 'replay', name: 'replay:old.ndjson', content_sha256: /^[0-9a-f]{64}$/ })
  const again = await sampleGroup({ ...sampler, policy, samples: 2 }, instance, place)
  const told = (list: typeof rollouts) => list.map(({ turns, answer, stop }) => ({ turns, answer, stop }))
  t.same(told(again.rollouts), told(rollouts))

  const more = await sampleGroup({ ...sampler, policy, samples: 3 }, instance, place)
  t.match(more.faults, [{ code: 'E_REPLAY', message: /no rollout of acme__lib-1, sample 2/ }])
  writeFileSync(file, `${JSON.stringify(rollouts[0])}\n`.repeat(2))
  await t.rejects(replayPolicy(file), { code: 'E_REPLAY', message: /old\.ndjson:2: a second rollout/ })
  writeFileSync(file, '')
  await t.rejects(replayPolicy(file), { message: /no rollout in it/ })
})

t.test('bm25 answers at once with the best Python files of the tree', async t => {
  const ask = (k?: number) => runRollout({ id: 'x', sample: 0, instance, tree, policy: bm25Policy(k), settings: settings() })
  const one = await ask(1)
  t.same(one.answer.files, ['lib/parse.py'], 'nothing of build/, nothing but Python')
  t.same([one.stop, one.usage.turns, one.usage.calls], ['answer', 1, 0])
  t.same((await ask()).answer.files, ['lib/parse.py', 'lib/other.py'], 'two, as in the paper')
  t.same((await ask(9)).answer.files.length, 3, 'no more than there are')
})
