import t from 'tap'
import type { Policy } from '#cg/policy/policy.js'
import { runRollout } from '#cg/rollout/run-rollout.js'
import type { RolloutSettings } from '#cg/rollout/settings.js'
import { codegrep } from '#cg/tools/codegrep.js'
import { treeOf } from '../tools/a-tree.js'
import { answer, block, chat, saying, settings, task } from './a-policy.js'

const { tree } = await treeOf(t, {
  'lib/parse.py': 'import re\n\ndef parse(line):\n    return re.split(",", line)\n',
  'lib/io.py': 'from lib.parse import parse\n',
  'tests/test_parse.py': 'from lib.parse import parse\n',
})
const play = (policy: Policy, rules: RolloutSettings = settings()) =>
  runRollout({ id: 'a'.repeat(64), sample: 0, instance: task, tree, policy, chat, settings: rules })

t.test('searches, sees, answers', async t => {
  const policy = saying([`${block('grep', { pattern: 'def parse' })}\n${block('glob', { pattern: '*.py' })}`, answer('lib/parse.py')])
  const { turns, answer: found, usage, stop, tokens } = await play(policy)
  t.equal(stop, 'answer')
  t.same(found.files, ['lib/parse.py'])
  t.same(usage, { prompt: 0, generated: 0, calls: 2, turns: 2 })
  t.equal(tokens, undefined)
  t.match(turns[0]!.calls, [
    { id: '0.0', name: 'grep', arguments: { pattern: 'def parse' }, status: 'ok', observation: 'lib/parse.py:3:def parse(line):' },
    { id: '0.1', name: 'glob', status: 'ok', observation: 'lib/io.py\nlib/parse.py\ntests/test_parse.py' },
  ])
  t.same(
    policy.requests[1]!.messages.slice(2).map(m => [m.role, m.content]),
    [
      ['assistant', turns[0]!.text],
      ['tool', 'lib/parse.py:3:def parse(line):'],
      ['tool', 'lib/io.py\nlib/parse.py\ntests/test_parse.py'],
    ],
  )
  t.same(
    policy.requests.map(r => [r.turn, r.last]),
    [
      [0, false],
      [1, false],
    ],
  )
})

const statuses: [what: string, turn: string, status: string, observation: string][] = [
  ['broken JSON', '<tool_call>\n{"name": "grep"\n</tool_call>', 'bad-call', '[bad call]'],
  ['an unknown tool', block('bash', { command: 'ls' }), 'unknown-tool', '[unknown tool: bash]'],
  ['wrong arguments', block('grep', { pattern: 3 }), 'bad-arguments', '[bad arguments: '],
  ['arguments that are no object', block('glob', ['*']), 'bad-call', '[bad call]'],
  ['nothing found', block('grep', { pattern: 'zzz' }), 'empty', '[no matches]'],
  ['a bad pattern', block('grep', { pattern: '(' }), 'bad-pattern', '[bad pattern: '],
  ['outside of the tree', block('read', { path: '../../etc/passwd' }), 'refused', '[refused: '],
]
for (const [what, turn, status, observation] of statuses)
  t.test(`a call: ${what}`, async t => {
    const { turns, stop } = await play(saying([turn, answer('a.py')]))
    const [call] = turns[0]!.calls
    t.equal(call!.status, status)
    t.ok(call!.observation!.startsWith(observation), call!.observation!)
    t.equal(stop, 'answer', 'and the rollout goes on')
  })

t.test('no call and no answer', async t => {
  const { stop, usage, answer: found } = await play(saying(['I could not find it.']))
  t.equal(stop, 'no-call')
  t.same(found, { files: [], ranges: [], modules: [], functions: [], parse: 'none' })
  t.equal(usage.turns, 1)
})

t.test('an answer beside calls wins; the calls are not run and not counted', async t => {
  const { stop, usage, turns, answer: found } = await play(saying([`${block('grep', { pattern: 'x' })}\n${answer('a.py')}`]))
  t.equal(stop, 'answer')
  t.same(found.files, ['a.py'])
  t.equal(usage.calls, 0)
  t.match(turns[0]!.calls, [{ status: 'not-run', observation: null }])
})

t.test('an answer that cannot be read ends the rollout too', async t => {
  const { stop, answer: found } = await play(saying(['<answer>a.py</answer>']))
  t.equal(stop, 'answer')
  t.equal(found.parse, 'none')
})

t.test('the last allowed turn: its calls are not run', async t => {
  const policy = saying(Array(9).fill(block('glob', { pattern: '*' })))
  const { stop, turns, usage } = await play(policy, settings({ maxTurns: 3 }))
  t.equal(stop, 'turns')
  t.same(
    turns.map(turn => turn.calls[0]!.status),
    ['ok', 'ok', 'not-run'],
  )
  t.equal(usage.calls, 3)
  t.same(
    policy.requests.map(r => r.last),
    [false, false, true],
  )
})

t.test('calls beyond the limit are answered, and counted', async t => {
  const { turns, usage } = await play(
    saying([
      Array(10)
        .fill(block('glob', { pattern: '*' }))
        .join('\n'),
      answer(),
    ]),
  )
  t.same(
    turns[0]!.calls.map(call => call.status),
    [...Array(8).fill('ok'), 'not-run', 'not-run'],
  )
  t.equal(turns[0]!.calls[9]!.observation, '[not run: 8 calls a turn]')
  t.equal(usage.calls, 10)
})

t.test('tokens: spans, log-probs, and the ids that were asked with', async t => {
  const policy = saying([block('grep', { pattern: 'def parse' }), answer('lib/parse.py')], { tokens: true })
  const { tokens, usage, turns } = await play(policy)
  const { ids, spans, logprobs, logprob_kind } = tokens!
  t.equal(logprob_kind, 'test-1')
  t.equal(usage.prompt, policy.requests[0]!.ids!.length)
  t.same(ids.slice(0, usage.prompt), [...policy.requests[0]!.ids!])
  t.same(ids.slice(0, spans[1]![0]), [...policy.requests[1]!.ids!], 'the second turn was asked with all of the first')
  t.equal(logprobs.length, usage.generated)
  t.equal(logprobs[1], -0.101, 'float32 in its shortest form')
  t.same(
    turns.map(turn => turn.tokens),
    spans.map(([start, end]) => end - start),
  )
  t.equal(spans.at(-1)![1], ids.length)
  t.match(
    chat.tokenizer.decode(ids),
    '<tool_response>\nlib/parse.py:3:def parse(line):\n</tool_response><|im_end|>\n<|im_start|>assistant\n<answer>',
  )
})

t.test('a turn that is cut off ends the rollout without an answer, whatever it holds', async t => {
  const policy = saying([`${answer('a.py')} and so on`.repeat(9)], { tokens: true })
  const { stop, answer: found, usage, turns } = await play(policy, settings({ turnTokens: 40 }))
  t.equal(stop, 'length')
  t.equal(found.parse, 'none')
  t.equal(usage.generated, 40)
  t.equal(turns[0]!.stop, 'length')
})

t.test('the budget is of the whole rollout', async t => {
  const search = block('glob', { pattern: '*.zzz' })
  const each = chat.tokenizer.encode(search).length + 1
  const policy = saying(Array(4).fill(search), { tokens: true })
  const { stop, usage, turns } = await play(policy, settings({ maxTokens: 2 * each }))
  t.equal(stop, 'length')
  t.equal(usage.generated, 2 * each)
  t.equal(turns.length, 2, 'there is nothing left for a third turn')
  t.same(
    policy.requests.map(r => r.maxTokens),
    [2 * each, each],
  )
})

t.test('the context: what does not fit ends the rollout', async t => {
  const search = block('read', { path: 'lib/parse.py' })
  const opening = await play(saying([search], { tokens: true }), settings({ maxTurns: 1 }))
  const first = opening.tokens!.ids.length
  const observation = await play(saying([search, search], { tokens: true }), settings({ context: first + 10 }))
  t.equal(observation.stop, 'context', 'an observation')
  t.equal(observation.tokens!.ids.length, first)
  t.equal(observation.turns[0]!.calls[0]!.status, 'ok')
  const turn = await play(saying([search], { tokens: true }), settings({ context: first - 3 }))
  t.equal(turn.stop, 'context', 'a turn')
  t.equal(turn.tokens!.ids.length, first - 3)
  const prompt = await play(saying([search], { tokens: true }), settings({ context: 10 }))
  t.equal(prompt.stop, 'context', 'the prompt itself')
  t.equal(prompt.turns.length, 0)
})

t.test('a tool that timed out marks the rollout', async t => {
  const slow = codegrep({ timeoutMs: { grep: 1, glob: 1, read: 1 } })
  const tools = slow.tools.map(tool => ({
    ...tool,
    run: async () => ({ text: '[timeout after 0.001 s: 0 matches so far]', status: 'timeout' as const, truncated: false }),
  }))
  const played = await play(saying([block('grep', { pattern: 'x' }), answer()]), settings({}, { ...slow, tools }))
  t.equal(played.tool_timeouts, 1)
})

t.test('a policy that fails, fails the rollout', async t => t.rejects(play(saying([new TypeError('broken')])), { message: 'broken' }))
