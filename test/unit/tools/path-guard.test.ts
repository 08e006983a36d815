import t from 'tap'
import { guardPath } from '#cg/tools/path-guard.js'

const inside: [written: string, path: string][] = [
  ['src/a.py', 'src/a.py'],
  ['./src//a.py', 'src/a.py'],
  ['src/', 'src'],
  ['.', ''],
  ['', ''],
  ['...', '...'],
  ['a..b/..c', 'a..b/..c'],
  ['.github/x.git', '.github/x.git'],
  ['.gitignore', '.gitignore'],
]
for (const [written, path] of inside)
  t.test(`${written} is ${path || 'the root'}`, async t => t.strictSame(guardPath(written), { inside: path }))

for (const written of ['/etc/passwd', '..', '../x', 'a/../../x', 'a/..', '.git', '.git/config', 'a/.GIT/config', 'a\0b'])
  t.test(`${JSON.stringify(written)} is refused`, async t => t.type((guardPath(written) as { refused: string }).refused, 'string'))
