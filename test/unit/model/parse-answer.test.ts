import t from 'tap'
import { parseAnswer } from '#cg/model/parse-answer.js'

type Expected = { files: string[]; ranges?: [string, number, number][]; parse?: 'exact' | 'repaired' | 'none' } | undefined
const answer = (json: string) => `<answer>${json}</answer>`

const cases: [what: string, turn: string, expected: Expected][] = [
  ['no block', 'a.py it is', undefined],
  ['a block that is not closed', '<answer>{"files": ["a.py"]}', undefined],
  [
    'files and ranges',
    answer('{"files": ["a.py", "b/c.py"], "line_ranges": ["a.py:12-20"]}'),
    { files: ['a.py', 'b/c.py'], ranges: [['a.py', 12, 20]] },
  ],
  ['words before it', `It is in a.py.\n${answer('{"files": ["a.py"], "line_ranges": []}')}`, { files: ['a.py'] }],
  ['nothing found', answer('{"files": [], "line_ranges": []}'), { files: [] }],
  ['no ranges at all', answer('{"files": ["a.py"]}'), { files: ['a.py'] }],
  ['the last block counts', answer('{"files": ["a.py"]}') + answer('{"files": ["b.py"]}'), { files: ['b.py'] }],
  ['a last block that is not closed does not', `${answer('{"files": ["a.py"]}')}<answer>{"files"`, { files: ['a.py'] }],
  ['a block begun twice', `<answer><answer>{"files": ["a.py"]}</answer>`, { files: ['a.py'] }],
  [
    'ranges as objects',
    answer('{"files": [], "line_ranges": [{"path": "a.py", "start": 1, "end": 2}, {"file": "b.py", "start_line": 3, "end_line": 4}]}'),
    {
      files: [],
      ranges: [
        ['a.py', 1, 2],
        ['b.py', 3, 4],
      ],
    },
  ],
  ['ranges as lists', answer('{"files": [], "line_ranges": [["a.py", 5, 5]]}'), { files: [], ranges: [['a.py', 5, 5]] }],
  ['one line', answer('{"files": [], "line_ranges": ["a.py:7"]}'), { files: [], ranges: [['a.py', 7, 7]] }],
  ['a colon in the path', answer('{"files": [], "line_ranges": ["c:/a.py:7-8"]}'), { files: [], ranges: [['c:/a.py', 7, 8]] }],
  [
    'paths are normalised, repeats dropped, order kept',
    answer('{"files": ["./b.py", "a//b.py", "b.py"], "line_ranges": ["b.py:1-2", "./b.py:1-2"]}'),
    { files: ['b.py', 'a/b.py'], ranges: [['b.py', 1, 2]] },
  ],
  ['single quotes', answer("{'files': ['a.py'], 'line_ranges': []}"), { files: ['a.py'], parse: 'repaired' }],
  ['trailing commas', answer('{"files": ["a.py",], "line_ranges": [],}'), { files: ['a.py'], parse: 'repaired' }],
  ['a code fence', answer('\n```json\n{"files": ["a.py"]}\n```\n'), { files: ['a.py'], parse: 'repaired' }],
  ['a bare list', answer('["a.py", "b.py"]'), { files: ['a.py', 'b.py'], parse: 'repaired' }],
  ['one file as text', answer('{"files": "a.py"}'), { files: ['a.py'], parse: 'repaired' }],
  ['what is no path is left out', answer('{"files": ["a.py", 3, null, " "]}'), { files: ['a.py'], parse: 'repaired' }],
  [
    'a range that ends before it begins',
    answer('{"files": ["a.py"], "line_ranges": ["a.py:9-3"]}'),
    { files: ['a.py'], parse: 'repaired' },
  ],
  ['line 0', answer('{"files": ["a.py"], "line_ranges": [["a.py", 0, 3]]}'), { files: ['a.py'], parse: 'repaired' }],
  [
    'a line above 2^53',
    answer('{"files": ["a.py"], "line_ranges": [["a.py", 1, 9007199254740992]]}'),
    { files: ['a.py'], parse: 'repaired' },
  ],
  ['a range without lines', answer('{"files": ["a.py"], "line_ranges": ["a.py"]}'), { files: ['a.py'], parse: 'repaired' }],
  ['not readable', answer('the file is a.py'), { files: [], parse: 'none' }],
  ['other JSON', answer('{"path": "a.py"}'), { files: [], parse: 'none' }],
  ['cut JSON', answer('{"files": ["a.py"'), { files: [], parse: 'none' }],
  ['empty', answer(''), { files: [], parse: 'none' }],
  ['a thought holds no answer', `<think>${answer('{"files": ["a.py"]}')}</think>`, undefined],
]

for (const [what, turn, expected] of cases)
  t.test(what, async t => {
    const found = parseAnswer(turn)
    if (!expected) return t.equal(found, undefined)
    const ranges = (expected.ranges ?? []).map(([path, start, end]) => ({ path, start, end }))
    return t.same(found, { files: expected.files, ranges, modules: [], functions: [], parse: expected.parse ?? 'exact' })
  })

t.test('a hundred thousand ranges take no longer than they must', async t => {
  const ranges = Array.from({ length: 1e5 }, (_, n) => `"a.py:${n + 1}"`)
  t.equal(parseAnswer(answer(`{"files": [], "line_ranges": [${ranges}, ${ranges}]}`))!.ranges.length, 1e5)
})
