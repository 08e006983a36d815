import t from 'tap'
import { matchGlob } from '#cg/tools/glob-match.js'

const names = [
  '.github/ci.yml',
  'a.py',
  'a+b.py',
  'lib/a.py',
  'lib/sub/b.py',
  'lib/sub/c.txt',
  'setup.py',
  'tests/test_a.py',
  '[x].py',
  'z(1).js',
]

const cases: [glob: string, matched: string][] = [
  ['*.py', 'a.py a+b.py lib/a.py lib/sub/b.py setup.py tests/test_a.py [x].py'],
  ['a.py', 'a.py lib/a.py'],
  ['./a.py', 'a.py'],
  ['/a.py', 'a.py'],
  ['lib/*.py', 'lib/a.py'],
  ['lib/**', 'lib/a.py lib/sub/b.py lib/sub/c.txt'],
  ['lib/', 'lib/a.py lib/sub/b.py lib/sub/c.txt'],
  ['lib/**/*.py', 'lib/a.py lib/sub/b.py'],
  ['**/*.py', 'a.py a+b.py lib/a.py lib/sub/b.py setup.py tests/test_a.py [x].py'],
  ['**/test_*.py', 'tests/test_a.py'],
  ['?.py', 'a.py lib/a.py lib/sub/b.py'],
  ['*.{yml,txt}', '.github/ci.yml lib/sub/c.txt'],
  ['{lib,tests}/*.py', 'lib/a.py tests/test_a.py'],
  ['[ab].py', 'a.py lib/a.py lib/sub/b.py'],
  ['[!a].py', 'lib/sub/b.py'],
  ['!a.py', ''],
  ['z(1).js', 'z(1).js'],
  ['z\\(1\\).js', 'z(1).js'],
  ['\\[x].py', '[x].py'],
  ['A.PY', ''],
  ['../a.py', ''],
  ['a.p', ''],
]
for (const [glob, matched] of cases)
  t.test(glob, async t => {
    const found = matchGlob(glob, names, 1000)
    t.equal(found.matched.map(i => names[i]).join(' '), matched)
    t.equal(found.timeout, false)
  })

t.test('a quoted name is matched by what it stands for', async t => {
  t.strictSame(matchGlob('*.py', ['"a\\nb.py"', '"c.txt\\377"'], 1000).matched, [0])
})

t.test('a hostile glob is interrupted', async t => {
  const start = performance.now()
  const { timeout, matched } = matchGlob(`${'*a'.repeat(12)}b`, ['b.py', 'aab', 'a'.repeat(200), 'aab'], 100)
  t.equal(timeout, true)
  t.strictSame(matched, [])
  t.ok(performance.now() - start < 5000)
})
