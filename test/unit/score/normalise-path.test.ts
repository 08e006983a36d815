import t from 'tap'
import { comparedPath, normalisePath } from '#cg/score/normalise-path.js'

const cases: [path: string, plain: string][] = [
  ['a/b.py', 'a/b.py'],
  ['./a//b/./c', 'a/b/c'],
  ['a\\b\\c.py', 'a/b/c.py'],
  ['a/b/', 'a/b'],
  ['x/../y', 'y'],
  ['a/b/../../c', 'c'],
  ['', ''],
  // paths that leave the tree can only miss: they stay
  ['../a', '../a'],
  ['a/../../b', 'a/../../b'],
  ['/etc/passwd', '/etc/passwd'],
  ['\\a', '\\a'],
  ['a b/ c.py', 'a b/ c.py'],
]

for (const [path, plain] of cases) t.test(JSON.stringify(path), async t => t.equal(normalisePath(path), plain))

t.test('normalising twice changes nothing more', async t => {
  for (const [path] of cases) t.equal(normalisePath(normalisePath(path)), normalisePath(path))
})

t.test('two spellings of a letter compare as equal', async t => {
  t.equal(comparedPath('cafe\u0301.py'), comparedPath('./caf\u00e9.py'))
  t.not(normalisePath('cafe\u0301.py'), normalisePath('caf\u00e9.py'))
})
