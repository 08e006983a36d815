import t from 'tap'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codePoints } from '#cg/tools/clip.js'
import { codegrep } from '#cg/tools/codegrep.js'
import type { Caps } from '#cg/tools/toolset.js'
import type { Tree } from '#cg/tools/tree.js'
import { treeOf } from './a-tree.js'

t.setTimeout(120_000)

const numbered = (count: number, text = (n: number) => `line ${n}`) => Array.from({ length: count }, (_, i) => `${text(i + 1)}\n`).join('')

const files = {
  'README.md': '# parse\n\nUse `parse_header`.\n',
  'empty.txt': '',
  'crlf.txt': 'one\r\ntwo\r\n',
  'latin1.txt': Buffer.from('caf\u00e9 parse\n', 'latin1'),
  'logo.png': Buffer.from('\u0089PNG\0parse_header\n', 'latin1'),
  'long.js': `${'x'.repeat(1000)}parse_header${'y'.repeat(1000)}\n`,
  'many.txt': numbered(213),
  'src/parse.py': 'import re\n\n\ndef parse_header(line):\n    return line.split(":")\n\n\ndef parse_body(text):\n    return text\n',
  'src/web/app.py': 'from parse import parse_header\n',
  ...Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`gen/f${String(i).padStart(2, '0')}.txt`, `${i}\n`])),
}

type Case = [name: string, tool: string, args: unknown, status: string, text: string, caps?: Partial<Caps>]

// The words of every status, as the protocol has them ("Observations", "A turn").
const cases: Case[] = [
  [
    'matches in path order',
    'grep',
    { pattern: 'def parse' },
    'ok',
    'src/parse.py:4:def parse_header(line):\nsrc/parse.py:8:def parse_body(text):',
  ],
  [
    'context',
    'grep',
    { pattern: 'def parse_body', context: 1 },
    'ok',
    'src/parse.py-7-\nsrc/parse.py:8:def parse_body(text):\nsrc/parse.py-9-    return text',
  ],
  [
    'context that meets',
    'grep',
    { pattern: 'def', context: 2, path: 'src' },
    'ok',
    'src/parse.py-2-\nsrc/parse.py-3-\nsrc/parse.py:4:def parse_header(line):\nsrc/parse.py-5-    return line.split(":")\nsrc/parse.py-6-\nsrc/parse.py-7-\nsrc/parse.py:8:def parse_body(text):\nsrc/parse.py-9-    return text',
  ],
  ['below a path', 'grep', { pattern: 'parse_header', path: 'src/web/' }, 'ok', 'src/web/app.py:1:from parse import parse_header'],
  ['in one file', 'grep', { pattern: 'parse', path: './README.md' }, 'ok', 'README.md:1:# parse\nREADME.md:3:Use `parse_header`.'],
  [
    'by glob at any depth',
    'grep',
    { pattern: 'parse_header', glob: '*.py' },
    'ok',
    'src/parse.py:4:def parse_header(line):\nsrc/web/app.py:1:from parse import parse_header',
  ],
  ['case', 'grep', { pattern: 'IMPORT RE', ignore_case: true }, 'ok', 'src/parse.py:1:import re'],
  [
    'a binary file that matches is said',
    'grep',
    { pattern: 'parse_header', glob: '*.{png,md}' },
    'ok',
    'README.md:3:Use `parse_header`.\n[1 binary file skipped]',
  ],
  ['even if it is the only one', 'grep', { pattern: 'parse_header', path: 'logo.png' }, 'empty', '[no matches, 1 binary file skipped]'],
  ['nothing', 'grep', { pattern: 'absent' }, 'empty', '[no matches]'],
  [
    'nothing, in a dialect that means something else here',
    'grep',
    { pattern: 'absent\\|gone' },
    'empty',
    '[no matches: \\| is a literal |, alternatives are written a|b]',
  ],
  ['nothing there to search', 'grep', { pattern: 'x', path: 'nowhere' }, 'not-found', '[no such file]'],
  ['no file fits the glob', 'grep', { pattern: 'x', glob: '*.rs' }, 'empty', '[no matches]'],
  [
    'more than the cap',
    'grep',
    { pattern: 'line', path: 'many.txt' },
    'truncated',
    `${numbered(50, n => `many.txt:${n}:line ${n}`)}[50 of 213 matches shown]`,
  ],
  [
    'a long line is cut around the match',
    'grep',
    { pattern: 'parse_header', path: 'long.js' },
    'ok',
    `long.js:1:…${'x'.repeat(143)}parse_header${'y'.repeat(143)}…`,
  ],
  ['bytes that are not UTF-8', 'grep', { pattern: 'parse', path: 'latin1.txt' }, 'ok', 'latin1.txt:1:caf\ufffd parse'],
  ['carriage returns are not shown', 'grep', { pattern: 'two' }, 'ok', 'crlf.txt:2:two'],
  ['unclosed group', 'grep', { pattern: 'def save(' }, 'bad-pattern', '[bad pattern: unclosed group: a literal ( is written \\(]'],
  ['unopened group', 'grep', { pattern: 'save)' }, 'bad-pattern', '[bad pattern: unopened group: a literal ) is written \\)]'],
  ['unclosed class', 'grep', { pattern: 'a[0' }, 'bad-pattern', '[bad pattern: unclosed character class: a literal [ is written \\[]'],
  [
    'nothing to repeat',
    'grep',
    { pattern: '*args' },
    'bad-pattern',
    '[bad pattern: repetition operator missing expression: a literal * + or ? is written with a backslash before it]',
  ],
  [
    'a brace',
    'grep',
    { pattern: 'x{' },
    'bad-pattern',
    '[bad pattern: repetition quantifier expects a valid decimal: a literal { is written \\{]',
  ],
  [
    'look-around',
    'grep',
    { pattern: 'a(?=b)' },
    'bad-pattern',
    '[bad pattern: look-around is not supported: search for a simpler pattern and read the lines around it]',
  ],
  [
    'backreference',
    'grep',
    { pattern: '(a)\\1' },
    'bad-pattern',
    '[bad pattern: backreferences are not supported: search for a simpler pattern]',
  ],
  [
    'unknown escape',
    'grep',
    { pattern: '\\y' },
    'bad-pattern',
    '[bad pattern: unrecognized escape sequence: a backslash stands before punctuation, or in \\d \\s \\w \\b]',
  ],
  [
    'newline',
    'grep',
    { pattern: 'a\\nb' },
    'bad-pattern',
    '[bad pattern: the literal "\\n" is not allowed in a regex: a pattern matches within one line]',
  ],
  [
    'a real newline',
    'grep',
    { pattern: 'a\nb' },
    'bad-pattern',
    '[bad pattern: the literal "\\n" is not allowed in a regex: a pattern matches within one line]',
  ],
  [
    'a backslash at the end',
    'grep',
    { pattern: 'a\\' },
    'bad-pattern',
    '[bad pattern: it ends in a backslash: a literal one is written \\\\]',
  ],
  [
    'too much',
    'grep',
    { pattern: '((((a{1,255}){1,255}){1,255}){1,255})' },
    'bad-pattern',
    '[bad pattern: compiled regex exceeds size limit of 104857600: use smaller repetition counts]',
  ],
  ['too long', 'grep', { pattern: 'a'.repeat(1001) }, 'bad-pattern', '[bad pattern: longer than 1000 characters]'],
  ['NUL', 'grep', { pattern: 'a\0' }, 'bad-pattern', '[bad pattern: it holds a NUL, files of text do not]'],
  ['out of the tree', 'grep', { pattern: 'root', path: '../..' }, 'refused', '[refused: paths stay inside the repository]'],
  [
    'time is up',
    'grep',
    { pattern: 'l[i]ne' },
    'timeout',
    '[timeout after 0 s: 0 matches so far]',
    { timeoutMs: { grep: 0, glob: 1000, read: 1000 } },
  ],

  ['files', 'glob', { pattern: '**/*.py' }, 'ok', 'src/parse.py\nsrc/web/app.py'],
  ['files at any depth', 'glob', { pattern: '*.md' }, 'ok', 'README.md'],
  ['no files', 'glob', { pattern: '*.rs' }, 'empty', '[no files]'],
  [
    'more files than the cap',
    'glob',
    { pattern: 'gen/*' },
    'truncated',
    `${Array.from({ length: 50 }, (_, i) => `gen/f${String(i).padStart(2, '0')}.txt\n`).join('')}[50 of 99 files shown]`,
  ],
  ['long glob', 'glob', { pattern: '*'.repeat(1001) }, 'bad-pattern', '[bad pattern: longer than 1000 characters]'],

  ['lines', 'read', { path: 'many.txt', start: 80, end: 82 }, 'ok', '[many.txt: lines 80-82 of 213]\n80:line 80\n81:line 81\n82:line 82'],
  [
    'to the end',
    'read',
    { path: 'src/parse.py', start: 8 },
    'ok',
    '[src/parse.py: lines 8-9 of 9]\n8:def parse_body(text):\n9:    return text',
  ],
  ['beyond the end', 'read', { path: 'README.md', start: 3, end: 9 }, 'ok', '[README.md: lines 3-3 of 3]\n3:Use `parse_header`.'],
  [
    'at most 200 lines',
    'read',
    { path: 'many.txt' },
    'truncated',
    `[many.txt: lines 1-200 of 213]\n${numbered(200, n => `${n}:line ${n}`)}`.trimEnd(),
  ],
  ['after the end', 'read', { path: 'README.md', start: 4 }, 'not-found', '[no such lines: README.md has 3]'],
  ['empty file', 'read', { path: 'empty.txt' }, 'empty', '[empty.txt: empty file]'],
  ['no file', 'read', { path: 'src/nothing.py' }, 'not-found', '[no such file]'],
  ['a file is no folder', 'read', { path: 'README.md/x' }, 'not-found', '[no such file]'],
  ['a folder', 'read', { path: 'src' }, 'ok', 'parse.py\nweb/\n[is a directory]'],
  [
    'a folder with too many entries',
    'read',
    { path: 'gen' },
    'truncated',
    'f00.txt\nf01.txt\n[is a directory: 2 of 99 entries shown]',
    { lines: 2 },
  ],
  ['a binary file', 'read', { path: 'logo.png' }, 'binary', '[binary file]'],
  [
    'not UTF-8',
    'read',
    { path: 'latin1.txt' },
    'ok',
    '[latin1.txt: lines 1-1 of 1]\n1:caf\ufffd parse\n[not all is UTF-8, \ufffd stands for the rest]',
  ],
  ['a long line', 'read', { path: 'long.js' }, 'ok', `[long.js: lines 1-1 of 1]\n1:${'x'.repeat(299)}…`],
  ['carriage returns', 'read', { path: 'crlf.txt' }, 'ok', '[crlf.txt: lines 1-2 of 2]\n1:one\n2:two'],
  ['absolute', 'read', { path: '/etc/passwd' }, 'refused', '[refused: write paths relative to the repository, without a leading /]'],
  ['above', 'read', { path: '../x' }, 'refused', '[refused: paths stay inside the repository]'],
  ['git', 'read', { path: '.git/config' }, 'refused', '[refused: the files of git are not part of the repository]'],

  ['not an object', 'grep', 'parse', 'bad-call', '[bad call]'],
  ['an array', 'grep', ['parse'], 'bad-call', '[bad call]'],
  ['nothing at all', 'grep', undefined, 'bad-call', '[bad call]'],
  ['no name', '', { pattern: 'x' }, 'bad-call', '[bad call]'],
  ['unknown tool', 'find', { pattern: 'x' }, 'unknown-tool', '[unknown tool: find]'],
  ['a name that would look like a status', 'a\n[ok]', {}, 'unknown-tool', '[unknown tool: a\\n[ok]]'],
  ['missing argument', 'grep', {}, 'bad-arguments', '[bad arguments: pattern is missing]'],
  ['wrong type', 'grep', { pattern: 1 }, 'bad-arguments', '[bad arguments: pattern must be a string]'],
  ['null is no string', 'grep', { pattern: 'x', path: null }, 'bad-arguments', '[bad arguments: path must be a string]'],
  ['wrong boolean', 'grep', { pattern: 'x', ignore_case: 'yes' }, 'bad-arguments', '[bad arguments: ignore_case must be true or false]'],
  ['a fraction', 'read', { path: 'x', start: 1.5 }, 'bad-arguments', '[bad arguments: start must be a whole number]'],
  ['line 0', 'read', { path: 'x', start: 0 }, 'bad-arguments', '[bad arguments: start must be at least 1]'],
  ['too much context', 'grep', { pattern: 'x', context: 21 }, 'bad-arguments', '[bad arguments: context must be at most 20]'],
  ['backwards', 'read', { path: 'x', start: 9, end: 5 }, 'bad-arguments', '[bad arguments: end 5 is before start 9]'],
  ['empty pattern', 'grep', { pattern: '' }, 'bad-arguments', '[bad arguments: pattern is empty]'],
  [
    'unknown argument',
    'glob',
    { pattern: 'x', depth: 1 },
    'bad-arguments',
    '[bad arguments: "depth" is not an argument: there are pattern]',
  ],
]

t.test('what the model sees', async t => {
  const { tree, slow } = await treeOf(t, files)
  for (const [name, tool, args, status, text, caps] of cases)
    await t.test(`${tool}: ${name}`, async t => {
      for (const each of [tree, slow]) {
        const observation = await run(each, tool, args, caps)
        t.equal(observation.text, text)
        t.equal(observation.status, status)
        t.equal(observation.truncated, status === 'truncated')
      }
    })

  t.test('grep sees some files only, unless a glob or a file is named', async t => {
    const caps = { grepGlob: '*.py' }
    const text = async (args: object) => (await run(tree, 'grep', { pattern: 'Use', ...args }, caps)).text
    t.equal(await text({}), '[no matches]')
    t.equal(await text({ glob: '*.md' }), 'README.md:3:Use `parse_header`.')
    t.equal(await text({ path: 'README.md' }), 'README.md:3:Use `parse_header`.')
  })

  t.test('4,096 characters hold whole lines and the status', async t => {
    for (const [tool, args] of [
      ['grep', { pattern: '.', context: 3 }],
      ['glob', { pattern: '**' }],
      ['read', { path: 'many.txt' }],
    ] as const)
      for (let chars = 60; chars < 700; chars += 7) {
        const { text, truncated } = await run(tree, tool, args, { chars })
        const ended =
          tool === 'read'
            ? /^\[many\.txt: lines 1-(\d+) of 213\](?:\n\d+:line \d+)*$/
            : /\n\[\d+ of \d+ (?:matches|files) shown(?:, 1 binary file skipped)?\]$/
        if (codePoints(text) > chars || !truncated || !ended.test(`\n${text}`.slice(tool === 'read' ? 1 : 0)))
          t.fail(`${tool} at ${chars}: ${text}`)
      }
    const { text } = await run(tree, 'grep', { pattern: 'line', path: 'many.txt' }, { chars: 300 })
    const lines = text.split('\n')
    t.equal(lines.at(-1), `[${lines.length - 1} of 213 matches shown]`, 'it counts what is shown')
  })
})

function run(tree: Tree, tool: string, args: unknown, caps: Partial<Caps> = {}) {
  return createToolRunner({ toolset: codegrep(caps), cache: noCache, cores: 2 }).call(tree, tool, args)
}
