import t from 'tap'
import { parsePatch } from '#cg/gold/parse-patch.js'
import { PatchFault } from '#cg/gold/patch.js'

t.test('a changed line', async t => {
  const [file] = parsePatch(patch('@@ -7,3 +7,4 @@ def f():', ' a', '-b', '+B', '+C', ' d'))
  t.match(file, { old: 'x.py', new: 'x.py', status: 'M', oldMode: null, binary: false })
  t.same(file!.hunks[0]!.runs, [{ oldLine: 8, removed: 1, newLine: 8, added: 2 }])
  t.match(file!.hunks[0], { section: 'def f():', hasContext: true, endsInContext: true, noNewlineOld: false, noNewlineNew: false })
})

t.test('runs are what stands between context lines', async t => {
  const [file] = parsePatch(patch('@@ -1,4 +1,5 @@', '+top', ' a', '-b', ' c', ' d', '+end'))
  t.same(
    file!.hunks[0]!.runs.map(({ oldLine, removed, added }) => [oldLine, removed, added]),
    [
      [1, 0, 1],
      [2, 1, 0],
      [5, 0, 1],
    ],
  )
})

t.test('additions before the removals of the same run are one run', async t => {
  const [file] = parsePatch(patch('@@ -3,1 +3,1 @@', '+new', '-old'))
  t.same(file!.hunks[0]!.runs, [{ oldLine: 3, removed: 1, newLine: 3, added: 1 }])
})

t.test('an entry names every side that it has', async t => {
  for (const text of [
    'diff --git \nrename to x',
    'diff --git a/x b/y\nrename to x\n',
    'diff --git a/x b/y\n--- a/x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n',
    '--- a/\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n',
  ])
    t.throws(() => parsePatch(text), { code: 'no name', line: 1 }, text)
})

t.test('a side that has lines begins at line 1 at least', async t => {
  for (const header of ['@@ -0,1 +1 @@', '@@ -0 +1 @@', '@@ -1 +0 @@'])
    t.throws(() => parsePatch(patch(header, '-a', '+b')), { code: 'corrupt', message: /not a hunk header/ }, header)
  t.equal(parsePatch(patch('@@ -0,0 +1 @@', '+b')).length, 1)
})

// by the square of its length each of these would take minutes
t.test('a line of a million characters takes no longer than it must', async t => {
  t.equal(parsePatch(`diff --git a/x b/x\n${'\r'.repeat(1e6)}x\n`)[0]!.old, 'x')
  t.throws(() => parsePatch(`diff --git a/${'b '.repeat(5e5)}\n`), { code: 'no name' })
  const name = 'b '.repeat(2e5)
  t.equal(parsePatch(`diff --git a/${name}c b/${name}c\nold mode 100644\nnew mode 100755\n`)[0]!.old, `${name}c`)
})

t.test('what looks like headers inside a hunk is text', async t => {
  const files = parsePatch(patch('@@ -1,2 +1,2 @@', '--- a/y.py', '-diff --git a/y b/y', '+++ b/y.py', '+@@ -1 +1 @@'))
  t.equal(files.length, 1)
  t.same(files[0]!.hunks[0]!.runs, [{ oldLine: 1, removed: 2, newLine: 1, added: 2 }])
})

t.test('a missing line feed at the end of a side', async t => {
  const none = '\\ No newline at end of file'
  const sides = (...lines: string[]) => {
    const { noNewlineOld, noNewlineNew } = parsePatch(patch('@@ -1 +1 @@', ...lines))[0]!.hunks[0]!
    return [noNewlineOld, noNewlineNew]
  }
  t.same(sides('-a', none, '+b'), [true, false])
  t.same(sides('-a', '+b', none), [false, true])
  t.same(sides('-a', none, '+b', none), [true, true])
})

t.test('git headers: names, modes, similarity', async t => {
  const files = parsePatch(
    [
      'diff --git a/o d.py b/n.py',
      'similarity index 96%',
      'rename from o d.py',
      'rename to n.py',
      'diff --git a/run b/run',
      'old mode 100644',
      'new mode 100755',
      'diff --git "a/caf\\303\\251.py" "b/caf\\303\\251.py"',
      'deleted file mode 100644',
      'index e69de29..0000000',
      'diff --git a/i.png b/i.png',
      'index 1..2 100644',
      'Binary files a/i.png and b/i.png differ',
    ].join('\n'),
  )
  t.match(files, [
    { old: 'o d.py', new: 'n.py', status: 'R', similarity: 96, hunks: [] },
    { old: 'run', new: 'run', status: 'M', oldMode: '100644', newMode: '100755' },
    { old: 'café.py', new: null, status: 'D', oldMode: '100644' },
    { old: 'i.png', new: 'i.png', status: 'M', binary: true, oldMode: '100644', newMode: '100644' },
  ])
})

t.test('/dev/null says that a side is missing, also without mode lines', async t => {
  t.match(parsePatch('diff --git a/n.py b/n.py\n--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+x\n'), [{ old: null, new: 'n.py', status: 'A' }])
  t.match(parsePatch('--- a/n.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n'), [{ old: 'n.py', new: null, status: 'D' }])
})

t.test('the shorter of two names of a plain diff', async t =>
  t.match(parsePatch('--- a/x.py.orig\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n'), [{ old: 'x.py', new: 'x.py' }]),
)

t.test('a hunk header that the text only mentions ends nothing', async t =>
  t.equal(parsePatch(`See --- a/q for\n+++ b/q and more.\n${patch('@@ -1 +1 @@', '-a', '+b')}`).length, 1),
)

const broken: [name: string, text: string, code: string, line: number, message: RegExp][] = [
  [
    'the end is missing',
    patch('@@ -1,3 +1,3 @@', ' a', '-b', '+B').trimEnd(),
    'truncated',
    7,
    /inside the hunk of line 4 \(@@ -1,3 \+1,3 @@\): 1 old and 1 new lines/,
  ],
  ['a line of no kind', patch('@@ -1,2 +1,2 @@', ' a', '*b'), 'corrupt', 6, /begins with "\*"/],
  [
    'more lines than the header says',
    patch('@@ -1,2 +1 @@', ' a', ' b'),
    'corrupt',
    6,
    /one line more on the new side than @@ -1,2 \+1 @@ says/,
  ],
  [
    'a line behind the hunk that its counts leave out',
    patch('@@ -1 +1 @@', '-a', '+b', '+c', '@@ -9 +10 @@', '-d', '+e'),
    'fragment without header',
    8,
    /counts/,
  ],
  ['a hunk without its file', '@@ -1 +1 @@\n-a\n+b\n', 'fragment without header', 1, /without the header/],
  ['a broken hunk header', patch('@@ -1,x +1 @@', '-a'), 'corrupt', 4, /not a hunk header: "@@ -1,x/],
  ['numbers beyond counting', patch('@@ -99999999999999999999 +1 @@', '-a'), 'corrupt', 4, /not a hunk header/],
  ['names without a hunk', 'diff --git a/x b/x\n--- a/x\n+++ b/x\n', 'truncated', 3, /no hunk/],
  ['a merge', 'diff --cc a.py\n@@@ -1,1 -1,1 +1,1 @@@\n', 'combined', 1, /diff against one parent/],
  ['nothing', '', 'empty', 1, /no diff/],
  ['prose', 'Fix it.\n\nThanks.\n', 'empty', 3, /no diff/],
  ['a name that cannot be stripped', '--- x.py\n+++ x.py\n@@ -1 +1 @@\n-a\n+b\n', 'no name', 1, /--strip 0/],
  ['a quote that does not end', 'diff --git "a/x b/x\nold mode 1\n', 'bad quote', 1, /does not end/],
]

for (const [name, text, code, line, message] of broken)
  t.test(name, async t => {
    t.throws(() => parsePatch(text), { code, line, message })
    t.throws(() => parsePatch(text), PatchFault)
  })

t.test('line numbers stay right on random edits, in both directions', async t => {
  const next = numbers(7)
  for (let n = 0; n < 200; n++) {
    const old = Array.from({ length: 5 + next(20) }, (_, i) => `l${i}`)
    const lines: string[] = []
    const removed: number[] = []
    const added: number[] = []
    let line = 0
    for (const [i, text] of old.entries()) {
      const what = next(5)
      if (what === 0) {
        lines.push(`+n${i}`)
        added.push(++line)
      }
      if (what === 1) {
        lines.push(`-${text}`)
        removed.push(i + 1)
      } else {
        lines.push(` ${text}`)
        line++
      }
    }
    const [file] = parsePatch(patch(`@@ -1,${old.length} +1,${line} @@`, ...lines))
    const { runs } = file!.hunks[0]!
    t.same(
      runs.flatMap(run => span(run.oldLine, run.removed)),
      removed,
    )
    t.same(
      runs.flatMap(run => span(run.newLine, run.added)),
      added,
    )
  }
})

function patch(...hunk: string[]): string {
  return `diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n${hunk.join('\n')}\n`
}

function span(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, n) => from + n)
}

/** A seeded sequence of integers below the argument (Lehmer, 1951). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state * 48271) % 2147483647
    return state % below
  }
}
