import t from 'tap'
import { type ParsedCall, parseCalls } from '#cg/model/parse-calls.js'

const call = (name: string, args: unknown): ParsedCall => ({ bad: false, name, arguments: args })
const bad = (text: string): ParsedCall => ({ bad: true, text })
const block = (json: string) => `<tool_call>\n${json}\n</tool_call>`

const cases: [what: string, turn: string, calls: ParsedCall[]][] = [
  ['no call', 'I could not find it.', []],
  ['one call', block('{"name": "grep", "arguments": {"pattern": "x"}}'), [call('grep', { pattern: 'x' })]],
  [
    'several, with words around them',
    `Let me look.\n${block('{"name": "grep", "arguments": {"pattern": "x"}}')}\nand\n${block('{"name": "glob", "arguments": {"pattern": "*"}}')}`,
    [call('grep', { pattern: 'x' }), call('glob', { pattern: '*' })],
  ],
  ['compact JSON on one line', '<tool_call>{"name":"read","arguments":{"path":"a.py"}}</tool_call>', [call('read', { path: 'a.py' })]],
  ['broken JSON', block('{"name": "grep", "arguments": {"pattern": "x"'), [bad('{"name": "grep", "arguments": {"pattern": "x"')]],
  ['single quotes are no JSON', block("{'name': 'grep', 'arguments': {}}"), [bad("{'name': 'grep', 'arguments': {}}")]],
  ['no name', block('{"arguments": {}}'), [bad('{"arguments": {}}')]],
  ['a list', block('["grep"]'), [bad('["grep"]')]],
  ['empty', block(''), [bad('')]],
  ['a last block that is not closed', '<tool_call>\n{"name": "glob", "arguments": {"pattern": "*"}}', [call('glob', { pattern: '*' })]],
  ['no arguments', block('{"name": "glob"}'), [call('glob', {})]],
  [
    'arguments that are text with an object',
    block('{"name": "glob", "arguments": "{\\"pattern\\": \\"*\\"}"}'),
    [call('glob', { pattern: '*' })],
  ],
  ['arguments that are text', block('{"name": "glob", "arguments": "*.py"}'), [call('glob', '*.py')]],
  ['arguments that are a list', block('{"name": "glob", "arguments": ["*"]}'), [call('glob', ['*'])]],
  [
    'a number that is none',
    block('{"name": "read", "arguments": {"start": 1e400}}'),
    [bad('{"name": "read", "arguments": {"start": 1e400}}')],
  ],
  ['parameters for arguments', block('{"name": "glob", "parameters": {"pattern": "*"}}'), [call('glob', { pattern: '*' })]],
  ['a thought holds no calls', `<think>\n${block('{"name": "grep", "arguments": {}}')}\n</think>\nDone.`, []],
  ['a thought that began in the prompt', `${block('{"name": "a"}')}</think>${block('{"name": "b"}')}`, [call('b', {})]],
  ['a thought that does not end', `${block('{"name": "a"}')}<think>${block('{"name": "b"}')}`, [call('a', {})]],
]
const nested = (depth: number) => `{"name": "glob", "arguments": ${'{"a": '.repeat(depth)}1${'}'.repeat(depth)}}`
t.test('arguments deeper than a record can hold', async t => {
  t.match(parseCalls(block(nested(100))), [{ bad: false, name: 'glob' }])
  t.same(parseCalls(block(nested(10_000))), [bad(nested(10_000))])
})

for (const [what, turn, calls] of cases) t.test(what, async t => t.same(parseCalls(turn), calls))
