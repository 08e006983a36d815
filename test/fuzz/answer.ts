import { parseAnswer } from '#cg/model/parse-answer.js'
import { type Answer, rollout } from '#cg/record/schema.js'
import { must, type Target } from './target.js'

const target: Target = {
  name: 'answer',
  words: [
    ...[
      '<answer>',
      '</answer>',
      '<think>',
      '</think>',
      '{"files": [',
      '"line_ranges": [',
      '"a.py"',
      '"a.py:1-2"',
      "'a.py'",
      '"path": ',
      '"start_line": 1',
      '"end": 2',
      '["a.py", 1, 2]',
    ],
    ...[
      '```',
      '```json\n',
      '\n```',
      '`',
      ',',
      ']',
      '}',
      '[',
      '{',
      ':',
      'None',
      'True',
      'null',
      '\\',
      '\\u',
      '"',
      "'",
      '\n',
      ' ',
      '\ud800',
      '\u2028',
      '1-',
      ':1',
    ],
  ],
  maxBytes: 1 << 20,
  corpus() {
    const blocks = [
      '{"files": ["a.py", "b/c.py"], "line_ranges": ["a.py:12-20"]}',
      '{"files": [], "line_ranges": [{"path": "a.py", "start": 1, "end": 2}, {"file": "b.py", "start_line": 3, "end_line": 4}, ["c", 5, 5]]}',
      "{'files': ['./a//b.py', 'x\\\\y'], 'line_ranges': None,}",
      '\n```json\n{"files": ["a.py"], "line_ranges": ["a.py:7"]}\n```\n',
      '["a.py", "b.py"]',
      '{"files": "a.py"}',
      '',
    ]
    return [
      ...blocks.map(block => `It is here.\n<answer>${block}</answer>`),
      '<think>where?</think><answer>{"files": ["a.py"]}</answer> done',
      '<answer><answer>',
    ].map(block => Buffer.from(block))
  },

  /** Any text gives an answer that a rollout may hold, or none; the same answer comes from it in its canonical form. */
  check(input) {
    const found = parseAnswer(input.toString('utf8'))
    if (found === undefined) return 'none'
    must(rollout.shape.answer.safeParse(found).success, 'an answer that no rollout can hold')
    if (found.parse !== 'none') {
      const again = parseAnswer(canonicalForm(found))
      must(JSON.stringify(again) === JSON.stringify({ ...found, parse: 'exact' }), 'the canonical form of the answer is read as another')
    }
    return `${found.parse} ${Math.min(found.files.length, 4)} ${Math.min(found.ranges.length, 4)}`
  },
}
export default target

/** As the protocol asks for it. A path that ends in blanks, which would be cut, is written so that it does not. */
function canonicalForm({ files, ranges }: Answer): string {
  const name = (path: string) => `${path === path.trimStart() ? '' : './'}${path}${path === path.trimEnd() ? '' : '/.'}`
  const json = JSON.stringify({ files: files.map(name), line_ranges: ranges.map(({ path, start, end }) => [name(path), start, end]) })
  return `<answer>${json.replaceAll('<', '\\u003c')}</answer>`
}
