import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { GrepQuery, GrepResult } from '#cg/tools/tree.js'
import type { Change } from '../repo/make-repository.js'
import { treeOf } from './a-tree.js'

t.setTimeout(180_000)

const odd: Change = {
  'a/a.txt': 'needle in a folder\n',
  'a+.txt': 'needle beside it\n',
  'no-newline.txt': 'first needle\nlast needle',
  'empty-lines.txt': '\n\nneedle\n\n\nneedle\n\n',
  'twice.txt': 'needle needle\nneedleneedle\n',
  'letters.txt': 'Kelvin \u212a, long \u017f, É é, sky, SKY\n',
  '.hidden/x.txt': 'needle\n',
  'ignored.log': 'needle\n',
  '.gitignore': 'nothing-yet\n',
  'broken.txt': Buffer.from('needle \u00ff\nx\n', 'latin1'),
  'data.bin': Buffer.from('\0needle\n'),
  'late-nul.txt': `${'x'.repeat(9000)}\0needle\n`,
  'crlf.txt': 'needle\r\nx\r\n',
}

t.test('grep finds what git grep finds, line by line', async t => {
  const { tree, slow, path } = await treeOf(t, { ...project('cfgstack'), ...project('waymark') })
  const patterns = [
    'def ',
    'class [A-Z][A-Za-z]*',
    '^import ',
    'return None$',
    'raise|except',
    'self',
    '[0-9]+\\.[0-9]+',
    'Error\\(',
    'no such thing anywhere',
    '"[^"]*%s',
  ]
  for (const ignoreCase of [false, true])
    for (const pattern of patterns) {
      const expected = gitGrep(path, pattern, ignoreCase)
      for (const [name, each] of [
        ['memory', tree],
        ['ripgrep', slow],
      ] as const)
        t.strictSame(linesOf(await each.grep(query(pattern, { ignoreCase }))), expected, `${name}: ${pattern}${ignoreCase ? ' -i' : ''}`)
    }
  t.strictSame(linesOf(await slow.grep(query('def', { path: 'cfgstack/tests' }))), gitGrep(path, 'def', false, 'cfgstack/tests'))
  t.strictSame(linesOf(await slow.grep(query('def', { glob: 'test_*.py' }))), gitGrep(path, 'def', false, ':(glob)**/test_*.py'))
})

t.test('order is bytewise, hidden and ignored files count when they are tracked, others never', async t => {
  const { tree, slow, path } = await treeOf(t, odd, { '.gitignore': '*.log\n' })
  execFileSync('sh', ['-c', 'echo needle > untracked.txt'], { cwd: path })
  const expected = gitGrep(path, 'needle', false)
  t.ok(expected.some(line => line.startsWith('ignored.log:')) && expected.some(line => line.startsWith('.hidden')))
  t.ok(expected.findIndex(l => l.startsWith('a+.txt')) < expected.findIndex(l => l.startsWith('a/a.txt')))
  for (const each of [tree, slow]) {
    const result = await each.grep(query('needle'))
    t.strictSame(linesOf(result), expected)
    t.match(result, { skippedBinary: 1 }, 'a NUL after the first 8,000 bytes does not make a file binary')
  }
})

t.test('the scan in memory is ripgrep, only faster', async t => {
  const { tree, slow } = await treeOf(t, { ...project('inkwell'), ...odd })
  const wrong: unknown[] = []
  const compare = async (asked: GrepQuery) => {
    const [fast, reference] = [await tree.grep(asked), await slow.grep(asked)]
    if (!isDeepStrictEqual(fast, reference)) wrong.push({ asked, fast, reference })
  }
  for (const pattern of [
    'needle',
    'needle|first',
    'first|first needle',
    'x]}',
    'a\\.b',
    '\\(self\\)',
    'é',
    'E',
    'k',
    's',
    'sky',
    ' ',
    '\\"',
    "\\'",
    '#',
    'a\\-b',
    '\\/',
    '~|\\~|&',
  ])
    for (const context of [0, 2])
      for (const ignoreCase of [false, true]) for (const limit of [2, 1000]) await compare(query(pattern, { context, ignoreCase, limit }))

  const text = Object.values(project('inkwell')).join('')
  let state = 7
  const random = (n: number) => {
    state = (state * 48271) % 2147483647
    return state % n
  }
  for (let i = 0; i < 40; i++) {
    const pieces = Array.from({ length: 1 + random(3) }, () => {
      const at = random(text.length - 20)
      return text.slice(at, at + 1 + random(12)).split('\n')[0]!
    }).filter(Boolean)
    if (pieces.length === 0) continue
    const pattern = pieces.map(piece => piece.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&')).join('|')
    await compare(query(pattern, { context: random(4), ignoreCase: random(2) === 1, limit: 1 + random(60) }))
  }
  t.strictSame(wrong, [])
})

t.test('a list of files that fills more than a command line is searched all the same', async t => {
  const many = Object.fromEntries(
    Array.from({ length: 1500 }, (_, i) => [
      `folder-with-a-long-name-${i % 7}/${'n'.repeat(60)}-${i}.txt`,
      i % 100 === 0 ? `needle ${i}\n` : 'x\n',
    ]),
  )
  const { slow, path } = await treeOf(t, many)
  const expected = gitGrep(path, 'needle', false)
  t.equal(expected.length, 15)
  t.strictSame(linesOf(await slow.grep(query('needle'))), expected)
  t.match(await slow.grep(query('n(')), { kind: 'bad-pattern', message: 'unclosed group' })
  t.match(await slow.grep(query('no[t]hing')), { kind: 'matches', total: 0 })
})

function query(pattern: string, more: Partial<GrepQuery> = {}): GrepQuery {
  return { pattern, ignoreCase: false, context: 0, limit: 100_000, timeoutMs: 60_000, ...more }
}

function linesOf(result: GrepResult): string[] {
  if (result.kind !== 'matches') return [JSON.stringify(result)]
  return result.lines.map(({ path, line, text }) => `${path}:${line}:${text}`)
}

/** The plain twin: git's own search of the worktree, tracked files only, binary ones left out. */
function gitGrep(path: string, pattern: string, ignoreCase: boolean, ...pathspec: string[]): string[] {
  const args = ['-c', 'core.quotePath=false', 'grep', '-nIE', '--no-color', ...(ignoreCase ? ['-i'] : []), '-e', pattern, '--', ...pathspec]
  try {
    return execFileSync('git', args, { cwd: path, maxBuffer: 1 << 26, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } })
      .toString()
      .split('\n')
      .slice(0, -1)
  } catch (error) {
    if ((error as { status: number }).status === 1) return []
    throw error
  }
}

/** The files of a fixture project at its HEAD. */
function project(name: string): Record<string, string> {
  const root = join(process.cwd(), 'fixtures/repos', name, 'tree')
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return Object.fromEntries(
    files.map(({ parentPath, name: file }) => [
      `${name}/${join(parentPath, file).slice(root.length + 1)}`,
      readFileSync(join(parentPath, file), 'utf8'),
    ]),
  )
}
