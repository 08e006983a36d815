import t from 'tap'
import { parseAnswer } from '#cg/model/parse-answer.js'
import { parseCalls } from '#cg/model/parse-calls.js'
import { spacedJson } from '#cg/policy/call-text.js'
import { lexicalPolicy } from '#cg/policy/lexical.js'
import { issueClues } from '#cg/policy/lexical-clues.js'
import type { Message } from '#cg/policy/policy.js'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import { treeOf } from '../tools/a-tree.js'

const { tree } = await treeOf(t, {
  'lib/header.py':
    'class HeaderError(Exception):\n    pass\n\n\ndef parse_header(line):\n    raise HeaderError("header is not complete")\n',
  'lib/app.py': 'from lib.header import parse_header\n\n\ndef main():\n    parse_header("x")\n',
  'lib/colours.py': '"""Colours of columns."""\nGAP = 3\n',
  'tests/test_header.py': 'from lib.header import parse_header\n\n\ndef test_parse_header():\n    parse_header("x")\n',
})

const clues = (problem_statement: string, repo = 'acme/lib') =>
  issueClues({ repo, problem_statement }).map(clue =>
    clue.kind === 'frame' ? `frame ${clue.path}:${clue.line} ${clue.name}` : `${clue.kind} ${clue.text}`,
  )

const found: [what: string, issue: string, some: string[]][] = [
  ['a called function', 'parse_header("x") drops the last byte', ['name parse_header']],
  ['a method: it, more than its class', '`HeaderParser.feed` is slow', ['name feed', 'name HeaderParser']],
  ['a class', 'RetryPolicy forgets the delay', ['name RetryPolicy']],
  ['a constant', 'MAX_DELAY has no effect', ['name MAX_DELAY']],
  ['a setting', 'retry_limit = 3 is ignored', ['name retry_limit']],
  ['a word set as code', 'the `hidden` flag is ignored', ['name hidden']],
  ['a module by its dotted path', 'the bug is in lib.parsers.header somewhere', ['module parsers/header']],
  ['a module in words', 'the header module melts lines', ['module header']],
  ['a file', 'see src/header.py for it', ['module src/header']],
  [
    'a log line, without its values',
    'I get\n\n    lib: cannot open queue /tmp/x: no such folder\n\nevery time',
    ['message cannot open queue', 'message no such folder'],
  ],
  ['a quoted message', 'It says "header is not complete" to me', ['message header is not complete']],
  ['what something says', 'the command says: unknown option: -s', ['message unknown option']],
  ['an exception of the project', 'lib.errors.HeaderError: line 3 has no colon', ['message has no colon']],
  [
    'frames of a traceback, the last first; not those outside',
    'Traceback (most recent call last):\n  File "/usr/lib/python3.11/runpy.py", line 1, in run\n    x\n  File "lib/app.py", line 7, in main\n    go()\n  File "lib/io.py", line 12, in read_all\n    y\nValueError: z',
    ['frame lib/io.py:12 read_all', 'frame lib/app.py:7 main'],
  ],
  ['words, when nothing is named', 'The gap between columns is much wider with colours', ['word column', 'word colour']],
]
for (const [what, issue, some] of found)
  t.test(`a clue: ${what}`, async t => {
    const all = clues(issue)
    for (const clue of some) t.ok(all.includes(clue), `${clue} in ${all.join(', ')}`)
    for (const [i, clue] of some.slice(1).entries())
      if (clue.startsWith('name') || clue.startsWith('frame')) t.ok(all.indexOf(some[i]!) < all.indexOf(clue), `${some[i]} before ${clue}`)
  })

t.test('no clues', async t => {
  t.notOk(
    clues('runpy fails', 'acme/runpy').some(clue => / runpy/.test(clue)),
    'the project’s own name',
  )
  t.notOk(
    clues('config.ini and app.json are read').some(clue => /^module/.test(clue)),
    'data files',
  )
  t.notOk(
    clues('len(x) and ValueError').some(clue => /^name/.test(clue)),
    'names of Python',
  )
  t.notOk(clues('File "/usr/lib/python3/dist-packages/x.py", line 3, in f').some(clue => /^frame/.test(clue)))
})

const runner = createToolRunner({ toolset: codegrep(), cache: noCache, cores: 2 })

async function play(problem_statement: string, { maxTurns = 4, maxCalls = 8, sample = 0 } = {}) {
  const policy = lexicalPolicy()
  const instance = { instance_id: 'i', repo: 'acme/lib', base_commit: 'c', problem_statement }
  const messages: Message[] = []
  const turns: string[] = []
  for (let turn = 0; turn < maxTurns; turn++) {
    const { text } = await policy.submit({
      rollout: 'r',
      turn,
      last: turn === maxTurns - 1,
      maxCalls,
      sample,
      instance,
      tree,
      messages,
      maxTokens: 100,
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
      seed: 0n,
    })
    turns.push(text)
    messages.push({ role: 'assistant', content: text })
    const answer = parseAnswer(text)
    if (answer) return { turns, answer }
    for (const call of parseCalls(text)) {
      if (call.bad) throw new Error('a bad call')
      messages.push({ role: 'tool', content: (await runner.call(tree, call.name, call.arguments)).text })
    }
  }
  throw new Error('no answer')
}

t.test('a definition beats uses and tests', async t => {
  const { turns, answer } = await play('parse_header("x") drops the last byte')
  t.equal(turns[0]!.split('\n</tool_call>')[0], '<tool_call>\n{"name": "grep", "arguments": {"pattern": "def parse_header"}}')
  t.same(answer.files, ['lib/header.py'])
  t.same(answer.ranges, [{ path: 'lib/header.py', start: 5, end: 15 }])
  t.equal(answer.parse, 'exact')
})

t.test('a message, a frame, a word', async t => {
  t.same((await play('It says "header is not complete" to me')).answer.files, ['lib/header.py'])
  const trace = 'Traceback (most recent call last):\n  File "lib/app.py", line 5, in main\n    parse_header("x")\nTypeError: z'
  t.same((await play(trace)).answer.files, ['lib/app.py'])
  t.same((await play('The gap between columns is much wider with colours')).answer.files, ['lib/colours.py'])
})

t.test('it knows when to stop: the last turn answers, whatever was found', async t => {
  const { turns, answer } = await play('Nothing of this zzyzx is anywhere', { maxTurns: 2 })
  t.equal(turns.length, 2)
  t.same(answer.files, [])
  t.equal((await play('x_y is wrong', { maxTurns: 1 })).turns.length, 1)
})

t.test('at most eight calls a turn, each different, patterns from the issue', async t => {
  const names = Array.from({ length: 20 }, (_, i) => `load_thing_${i}`)
  const { turns } = await play(`${names.join('() and ')}() all fail`)
  for (const turn of turns.slice(0, -1)) {
    const calls = parseCalls(turn)
    t.ok(calls.length > 0 && calls.length <= 8)
    t.equal(new Set(calls.map(call => JSON.stringify(call))).size, calls.length)
  }
})

t.test('fewer calls a turn: the searches go on in the next turns until one finds a definition', async t => {
  const issue = '`no_such` and `nor_this` call parse_header, which drops a byte'
  const patterns = (turns: string[]) =>
    turns.slice(0, -1).map(turn => parseCalls(turn).map(call => !call.bad && Object(call.arguments).pattern))
  const one = await play(issue, { maxCalls: 1 })
  t.ok(patterns(one.turns).length > 1 && patterns(one.turns).every(calls => calls.length === 1))
  t.equal(patterns(one.turns).at(-1)![0], 'parse_header')
  t.same(one.answer.files, ['lib/header.py'])
  t.same(patterns((await play(issue, { maxCalls: 2 })).turns).flat(), patterns((await play(issue)).turns).flat())
})

t.test('further samples search in other orders, each always in the same', async t => {
  const issue = '`no_such`, `nor_this`, `never_this` and `none_of_it` call parse_header, which drops a byte'
  const order = async (sample: number) => JSON.stringify((await play(issue, { sample })).turns[0])
  const orders = await Promise.all([0, 1, 2, 3].map(order))
  t.ok(new Set(orders).size > 2)
  t.equal(orders[0], JSON.stringify((await play(issue)).turns[0]))
  t.same(await Promise.all([0, 1, 2, 3].map(order)), orders)
})

t.test('twice the same', async t => t.same(await play('The gap between columns'), await play('The gap between columns')))

t.test('JSON as Python spells it', async t =>
  t.equal(spacedJson({ a: [1, 'é', { b: null }], c: {} }), '{"a": [1, "é", {"b": null}], "c": {}}'),
)
