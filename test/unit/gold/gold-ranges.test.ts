import t from 'tap'
import { codegrepTarget } from '#cg/gold/codegrep-target.js'
import { goldRanges, needsLineCount, type RangeRule } from '#cg/gold/gold-ranges.js'
import { parsePatch } from '#cg/gold/parse-patch.js'

type Row = [name: string, hunk: string[], lines: number | undefined, hunkRule: string, runRule?: string]

const cases: Row[] = [
  ['a replaced line', ['@@ -9,3 +9,3 @@', ' a', '-b', '+B', ' c'], 30, '10-10'],
  ['first to last removed line', ['@@ -1,5 +1,3 @@', '-a', ' b', ' c', '-d', ' e'], 5, '1-4', '1-1 4-4'],
  ['an insertion beside a removal adds nothing', ['@@ -1,3 +1,3 @@', '-a', ' b', '+n', ' c'], 3, '1-1', '1-1 2-3'],
  ['an insertion behind line k', ['@@ -4,2 +4,3 @@', ' a', '+n', ' b'], 9, '4-5'],
  ['an insertion before the first line', ['@@ -1,1 +1,2 @@', '+n', ' a'], 9, '1-1'],
  ['an insertion behind the last line', ['@@ -9,1 +9,2 @@', ' a', '+n'], 9, '9-9'],
  ['two insertions', ['@@ -1,3 +1,5 @@', ' a', '+n', ' b', '+m', ' c'], 9, '1-3', '1-2 2-3'],
  ['an empty file', ['@@ -0,0 +1 @@', '+n'], 0, ''],
  ['without a count, a hunk without context behind ends the file', ['@@ -8,2 +8,3 @@', ' a', ' b', '+n'], undefined, '9-9', '9-10'],
  ['without a count and without context nothing is known', ['@@ -9,0 +10 @@', '+n'], undefined, '9-10'],
]

for (const [name, hunk, lines, hunkRule, runRule = hunkRule] of cases)
  t.test(name, async t => {
    const files = parsePatch(`--- a/x.py\n+++ b/x.py\n${hunk.join('\n')}\n`)
    const ranges = (rule: RangeRule) =>
      goldRanges(files, () => lines, rule)
        .map(range => `${range.start}-${range.end}`)
        .join(' ')
    t.equal(ranges('hunk'), hunkRule)
    t.equal(ranges('run'), runRule)
  })

t.test('which files have ranges, and under which name', async t => {
  const files = parsePatch(
    [
      'diff --git a/old.py b/new.py',
      'similarity index 90%',
      'rename from old.py',
      'rename to new.py',
      '--- a/old.py',
      '+++ b/new.py',
      '@@ -1 +1 @@',
      '-a',
      '+b',
      'diff --git a/add.py b/add.py',
      'new file mode 100644',
      '--- /dev/null',
      '+++ b/add.py',
      '@@ -0,0 +1 @@',
      '+n',
      'diff --git a/src.py b/copy.py',
      'similarity index 90%',
      'copy from src.py',
      'copy to copy.py',
      '--- a/src.py',
      '+++ b/copy.py',
      '@@ -1 +1 @@',
      '-a',
      '+b',
      'diff --git a/lib b/lib',
      'index 1..2 160000',
      '--- a/lib',
      '+++ b/lib',
      '@@ -1 +1 @@',
      '-Subproject commit 1',
      '+Subproject commit 2',
      'diff --git a/gone.py b/gone.py',
      'deleted file mode 100644',
      '--- a/gone.py',
      '+++ /dev/null',
      '@@ -1,2 +0,0 @@',
      '-a',
      '-b',
    ].join('\n'),
  )
  const target = codegrepTarget(files, () => undefined)
  t.same(
    target.files.map(file => file.path),
    ['old.py', 'add.py', 'copy.py', 'lib', 'gone.py'],
  )
  t.same(target.ranges, [
    { path: 'old.py', start: 1, end: 1 },
    { path: 'gone.py', start: 1, end: 2 },
  ])
  t.ok(target.files.every(file => file.weight === 1 && file.source === 'patch'))
})

t.test('another range rule is another rule set', async t => {
  const files = parsePatch('--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n')
  t.equal(codegrepTarget(files, () => 1).gold_rules, 'codegrep/1')
  t.equal(codegrepTarget(files, () => 1, 'run').gold_rules, 'codegrep-run/1')
})

t.test('a file that occurs twice is gold once, with the ranges of both', async t => {
  const once = '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n'
  const target = codegrepTarget(parsePatch(once + once.replace('-1 +1', '-7 +7')), () => 9)
  t.equal(target.files.length, 1)
  t.same(
    target.ranges.map(range => range.start),
    [1, 7],
  )
})

t.test('only insertions need the number of lines', async t => {
  const needs = (...hunk: string[]) => needsLineCount(parsePatch(`--- a/x\n+++ b/x\n${hunk.join('\n')}\n`)[0]!)
  t.ok(needs('@@ -1 +1,2 @@', ' a', '+b'))
  t.notOk(needs('@@ -1,2 +1 @@', ' a', '-b'))
})
