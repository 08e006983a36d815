import { type ParsedCall, parseCalls } from '#cg/model/parse-calls.js'
import { must, type Target } from './target.js'

const target: Target = {
  name: 'calls',
  words: [
    ...[
      '<tool_call>',
      '</tool_call>',
      '<tool_call>\n',
      '<think>',
      '</think>',
      '{"name": "grep", "arguments": {"pattern": "x"}}',
      '"name": ',
      '"arguments": ',
      '"parameters": ',
    ],
    ...['{', '}', '[', ']', '"', '\\', '\\"', '```', ',', ':', '{"a":', 'null', '\ud800', '\n', '<', '"{\\"a\\": 1}"'],
  ],
  maxBytes: 1 << 20,
  corpus: () =>
    [
      'Let me look.\n<tool_call>\n{"name": "grep", "arguments": {"pattern": "def x"}}\n</tool_call>\n<tool_call>{"name": "read", "arguments": {"path": "a.py", "start": 1}}</tool_call>',
      '<think><tool_call>{"name": "no"}</tool_call></think><tool_call>{"name": "glob", "parameters": {"pattern": "*"}}',
      '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}</tool_call>',
      '<tool_call>{"name": 1}</tool_call><tool_call>[]</tool_call><tool_call>nothing</tool_call>',
      '<tool_call>',
    ].map(text => Buffer.from(text)),

  /** Any text gives calls that can be written into a record; the same calls come from their canonical form. */
  check(input) {
    const calls = parseCalls(input.toString('utf8'))
    for (const call of calls) must(call.bad ? call.text === call.text.trim() : typeof call.name === 'string', 'a call without a name')
    const again = parseCalls(calls.map(canonicalForm).join('\n'))
    must(JSON.stringify(again) === JSON.stringify(calls), 'the canonical form of the calls is read as others')
    return (
      [...new Set(calls.slice(0, 100).map(call => (call.bad ? 'bad' : typeof call.arguments)))].sort().join() + Math.min(calls.length, 5)
    )
  },
}
export default target

function canonicalForm(call: ParsedCall): string {
  if (call.bad) return `<tool_call>${call.text}</tool_call>`
  return `<tool_call>${JSON.stringify({ name: call.name, arguments: call.arguments }).replaceAll('<', '\\u003c')}</tool_call>`
}
