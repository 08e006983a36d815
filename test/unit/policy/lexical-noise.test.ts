import t from 'tap'
import { parseAnswer } from '#cg/model/parse-answer.js'
import { parseCalls } from '#cg/model/parse-calls.js'
import { lexicalPolicy } from '#cg/policy/lexical.js'
import { issueClues } from '#cg/policy/lexical-clues.js'
import { drawsOf } from '#cg/policy/lexical-draws.js'
import { joinedNames, searchVariants } from '#cg/policy/lexical-variants.js'
import type { Message } from '#cg/policy/policy.js'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import { treeOf } from '../tools/a-tree.js'

const filler = Array.from({ length: 120 }, (_, i) => `LIMIT_${i} = ${i}`).join('\n')
const { tree } = await treeOf(t, {
  'lib/header.py': `${filler}\n\n\ndef parse_header(line):\n    if not line:\n        raise ValueError("header is not complete")\n    return line\n\n\ndef fold(line):\n    return line\n`,
  'lib/app.py': 'from lib.header import parse_header\n\n\ndef main():\n    parse_header("x")\n',
  'lib/retry.py': 'def retry_delay(n):\n    return n\n',
  'tests/test_header.py': 'from lib.header import parse_header\n\n\ndef test_parse_header():\n    parse_header("x")\n',
  'README.md': '# lib\n',
})
const runner = createToolRunner({ toolset: codegrep(), cache: noCache, cores: 2 })
const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 }

const issues = [
  'parse_header("x") drops the last byte, `fold` does not',
  'It says "header is not complete" to me',
  'The retry delay is too long when a host is gone',
  'Traceback (most recent call last):\n  File "lib/app.py", line 5, in main\n    parse_header("x")\n  File "lib/header.py", line 126, in parse_header\n    raise ValueError\nValueError: header is not complete',
  'lib/header.py is slow',
  'Nothing of this zzyzx is anywhere',
]

type Played = { turns: string[]; observations: string[] }

async function play(noise: number, problem_statement: string, { rollout = 'r', seed = 0n, maxCalls = 8 } = {}): Promise<Played> {
  const policy = lexicalPolicy(noise)
  const instance = { instance_id: 'i', repo: 'acme/lib', base_commit: 'c', problem_statement }
  const messages: Message[] = []
  const turns: string[] = []
  for (let turn = 0; turn < 4; turn++) {
    const request = { rollout, turn, last: turn === 3, maxCalls, sample: 0, instance, tree, messages, maxTokens: 100, sampling, seed }
    const { text } = await policy.submit(request)
    turns.push(text)
    messages.push({ role: 'assistant', content: text })
    if (text.includes('<answer>') || !text.includes('<tool_call>')) break
    for (const call of parseCalls(text)) {
      if (call.bad) throw new Error(`a bad call: ${text}`)
      const { status, text: content } = await runner.call(tree, call.name, call.arguments)
      if (/^bad|unknown/.test(status)) throw new Error(`${status}: ${text}`)
      messages.push({ role: 'tool', content })
    }
  }
  return { turns, observations: messages.filter(m => m.role === 'tool').map(m => m.content) }
}

const many = Array.from({ length: 40 }, (_, i) => `rollout ${i}`)
const everything = (noise: number) =>
  Promise.all(issues.flatMap(issue => many.map(rollout => play(noise, issue, { rollout: `${issue} ${rollout}` }))))

t.test('noise has a name of its own, and chance; without it the agent is the one of before', async t => {
  t.same(lexicalPolicy().identity, { kind: 'lexical', name: 'lexical', revision: 3 })
  t.same(lexicalPolicy(0).identity, lexicalPolicy().identity)
  t.ok(lexicalPolicy(0).scripted)
  t.notOk(lexicalPolicy(0.3).scripted, 'seed and all are part of its results')
  t.notSame(lexicalPolicy(0.3).identity, lexicalPolicy(0.4).identity)
  t.same(await play(0, issues[0]!, { rollout: 'a', seed: 1n }), await play(0, issues[0]!, { rollout: 'b', seed: 2n }))
})

t.test('draws: the same for the same seed, rollout and turn; others for others', async t => {
  const of = (seed: bigint) => Promise.all(many.map(rollout => play(0.3, issues[0]!, { rollout, seed })))
  const first = await of(1n)
  t.same(await of(1n), first)
  t.notSame(await of(2n), first)
  t.ok(new Set(first.map(({ turns }) => turns.join())).size > 10, 'rollouts differ')
})

t.test('whatever it does is well-formed', async t => {
  for (const noise of [0.01, 0.5, 1])
    for (const { turns } of await everything(noise)) {
      const end = turns.at(-1)!
      if (!end.includes('<answer>')) t.notMatch(end, /[<{]/, 'it may give up, in words')
      else t.equal(parseAnswer(end)?.parse, 'exact')
      for (const turn of turns.slice(0, -1)) t.ok(parseCalls(turn).length > 0)
    }
})

t.test('one to four calls a turn, no more than are run', async t => {
  const counts = (played: Played[]) => new Set(played.flatMap(({ turns }) => turns.map(turn => parseCalls(turn).length)).filter(n => n > 0))
  t.same([...counts(await everything(0.01))].sort(), [1, 2, 3, 4])
  const two = await Promise.all(many.map(rollout => play(0.01, issues[0]!, { rollout, maxCalls: 2 })))
  t.same([...counts(two)].sort(), [1, 2])
})

t.test('more noise, fewer right answers; with little of it nearly all are right', async t => {
  const right = async (noise: number) => {
    const played = await Promise.all(many.map(rollout => play(noise, issues[1]!, { rollout })))
    return played.filter(({ turns }) => parseAnswer(turns.at(-1)!)?.files.join() === 'lib/header.py').length / many.length
  }
  const [none, some, all] = [await right(0.001), await right(0.4), await right(1)]
  t.ok(none > 0.9, `${none}`)
  t.ok(some < none && some > all && all < 0.5, `${none} ${some} ${all}`)
})

t.test('every flaw occurs', async t => {
  const played = await everything(0.5)
  const ends = played.map(({ turns }) => turns.at(-1)!)
  const files = ends.map(end => parseAnswer(end)?.files ?? [])
  const patterns = played.flatMap(({ turns }) =>
    turns.flatMap(turn => parseCalls(turn)).map(call => (call.bad ? '' : JSON.stringify(call.arguments))),
  )
  t.ok(
    ends.some(end => /could not find/.test(end)),
    'gives up',
  )
  t.ok(
    played.some(({ turns }) => turns.length === 1 && turns[0]!.includes('<answer>')),
    'guesses',
  )
  t.ok(
    files.some(paths => paths.length >= 3),
    'too many',
  )
  t.ok(
    files.some(paths => paths.join() === 'tests/test_header.py'),
    'a test',
  )
  t.ok(
    files.some(paths => paths.join() === 'lib/app.py'),
    'a caller',
  )
  t.ok(
    files.some(paths => paths.length === 0),
    'none',
  )
  t.ok(
    patterns.some(text => /README/.test(text)),
    'a look that is of no use',
  )
  t.ok(
    patterns.some(text => /"(error|import|def |class )"/.test(text)),
    'a word that is everywhere',
  )
})

t.test('ranges begin where the observations say, and end where a read showed the end', async t => {
  let ended = 0
  for (const { turns, observations } of await everything(0.2)) {
    for (const { path, start, end } of parseAnswer(turns.at(-1)!)?.ranges ?? []) {
      const shown = observations.some(
        text => text.includes(`${path}:${start}:`) || (text.startsWith(`[${path}: lines`) && text.includes(`\n${start}:`)),
      )
      const framed = path === 'lib/app.py' && start === 5
      t.ok(shown || framed, `${path}:${start}`)
      if (path === 'lib/header.py' && start === 123 && end === 126) ended++
    }
  }
  t.ok(ended > 0)
})

const joined: [issue: string, names: string[]][] = [
  ['The retry delay is too long', ['retry_delay']],
  ['Parsing the headers fails', ['parse_header']],
  ['It scales a nested border badly', ['scale_nested', 'nested_border', 'scale_nested_border']],
  ['The delay of the retry is wrong', ['retry_delay']],
  ['metre to yard conversion', ['metre_to_yard']],
  ['when it reads records', ['read_record']],
  ['`parse` header', []],
]
for (const [issue, names] of joined)
  t.test(`names that prose may stand for: ${issue}`, async t => {
    const found = joinedNames(issue)
    for (const name of names) t.ok(found.includes(name), `${name} among ${found}`)
    if (names.length === 0) t.same(found, [])
  })

t.test('variants: patterns from the issue, each once, as many as there are ways to say it', async t => {
  const clues = issueClues({ repo: 'acme/lib', problem_statement: issues[0]! })
  const seen = new Set<string>()
  for (const key of many) {
    const calls = searchVariants(issues[0]!, clues, drawsOf(key)).map(call => JSON.stringify(call.arguments))
    t.equal(new Set(calls).size, calls.length)
    for (const call of calls) seen.add(call)
  }
  for (const pattern of ['def parse_header', 'parse_header', 'parse_header\\('])
    t.ok(
      [...seen].some(call => call.includes(JSON.stringify(pattern))),
      pattern,
    )
  t.ok([...seen].some(call => call.includes('"glob":"*.py"')))
})
