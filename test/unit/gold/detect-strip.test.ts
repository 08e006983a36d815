import t from 'tap'
import { detectStrip } from '#cg/gold/detect-strip.js'

const cases: [name: string, patch: string, strip: number][] = [
  ["git's prefixes", 'diff --git a/src/x.py b/src/x.py\n', 1],
  ['other prefixes', 'diff --git old/x.py new/x.py\n', 1],
  ['no prefix', 'diff --git src/x.py src/x.py\n', 0],
  ['no prefix, a blank in the name', 'diff --git src/a b.py src/a b.py\r\n', 0],
  ['no prefix, a rename first', 'diff --git x.py y.py\nrename from x.py\nrename to y.py\ndiff --git src/z.py src/z.py\n', 0],
  ['svn', '--- src/x.py\t(revision 1)\n+++ src/x.py\t(working copy)\n@@ -1 +1 @@\n', 0],
  ['diff -u', '--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n', 1],
  ['nothing', '', 1],
]

for (const [name, patch, strip] of cases) t.test(name, async t => t.equal(detectStrip(patch), strip))

t.test('a line of a million characters takes no longer than it must', async t => t.equal(detectStrip(`--- ${'a'.repeat(1e6)}\nx\n`), 1))
