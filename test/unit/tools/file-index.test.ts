import t from 'tap'
import { indexFiles } from '#cg/tools/file-index.js'

const paths = ['a', 'b+c', 'b.py', 'b/x', 'b/y/z', 'b0', '"b\\n/q"', 'c/"d\\377"']
const index = indexFiles(paths.toSorted(bytewise).map(path => ({ path, oid: path, size: 1, executable: false })))

const within: [path: string, files: string][] = [
  ['', 'a "b\\n/q" b+c b.py b/x b/y/z b0 c/"d\\377"'],
  ['a', 'a'],
  ['b', 'b/x b/y/z'],
  ['b/y', 'b/y/z'],
  ['b/', ''],
  ['b/x/', ''],
  ['z', ''],
]
for (const [path, files] of within)
  t.test(`within ${path || 'the root'}`, async t =>
    t.equal(
      index
        .within(path)
        .map(file => file.path)
        .join(' '),
      files,
    ),
  )

t.test('entries of a folder', async t => {
  t.strictSame(index.entries(''), ['a', '"b\\n"/', 'b+c', 'b.py', 'b/', 'b0', 'c/'])
  t.strictSame(index.entries('b'), ['x', 'y/'])
  t.equal(index.entries('a'), undefined, 'a file is no folder')
  t.equal(index.entries('zz'), undefined)
})

t.test('files by path and by bytes', async t => {
  t.equal(index.file('b/x')?.path, 'b/x')
  t.equal(index.named('b\n/q')?.path, '"b\\n/q"')
  t.equal(index.file('b'), undefined)
})

function bytewise(a: string, b: string): number {
  const bytes = (s: string) => Buffer.from(s.replaceAll('"', '').replace('\\n', '\n').replace('\\377', '\u00ff'), 'latin1')
  return Buffer.compare(bytes(a), bytes(b))
}
