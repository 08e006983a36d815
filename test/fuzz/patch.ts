import { readFileSync } from 'node:fs'
import { detectStrip } from '#cg/gold/detect-strip.js'
import { goldFiles } from '#cg/gold/gold-files.js'
import { goldRanges, needsLineCount } from '#cg/gold/gold-ranges.js'
import { parsePatch } from '#cg/gold/parse-patch.js'
import { type Hunk, PatchFault } from '#cg/gold/patch.js'
import { must, outline, type Target } from './target.js'

const target: Target = {
  name: 'patch',
  words: [
    ...[
      'diff --git a/x.py b/x.py\n',
      '--- a/x.py\n',
      '+++ b/x.py\n',
      '--- ',
      '+++ ',
      '/dev/null',
      '\n',
      '@@ -1,2 +1,2 @@\n',
      '@@ -0,0 +1 @@\n',
      '@@ -1 +0,0 @@\n',
      '@@@ -1 -1 +1 @@@\n',
    ],
    ...[
      '\n ',
      '\n-',
      '\n+',
      '\\ No newline at end of file\n',
      'rename from ',
      'rename to ',
      'copy from ',
      'new file mode 100644\n',
      'deleted file mode 100644\n',
      'index 0..1 160000\n',
    ],
    ...[
      'similarity index 90%\n',
      'GIT binary patch\n',
      'Binary files a/x and b/x differ\n',
      '"a/\\303\\251"',
      ' "',
      '\r',
      '\r\n',
      '\t',
      'a/ ',
      '/ ',
      'diff --git ',
      'diff --cc x\n',
      ' @@',
      '-- \n',
    ],
  ],
  maxBytes: 1 << 20,
  corpus() {
    const { cases } = JSON.parse(readFileSync('fixtures/golden/retrieval/diff/cases.json', 'utf8')) as { cases: { patch: string }[] }
    return cases.map(({ patch }) => Buffer.from(patch)).filter(patch => patch.length < 20_000)
  },

  /** Either a PatchFault at a line of the text, or entries with names, whose ranges are lines that their hunks speak of. */
  check(input) {
    const text = input.toString('utf8')
    const lines = text.split('\n').length
    const strip = detectStrip(text)
    const outcomes: string[] = []
    for (const count of [strip, 2]) {
      try {
        const files = parsePatch(text, count)
        must(files.length > 0, 'no entry and no error')
        for (const name of goldFiles(files)) must(typeof name === 'string' && name !== '', 'an entry without a name')
        for (const file of files) {
          file.hunks.forEach(checkHunk)
          needsLineCount(file)
        }
        for (const rule of ['hunk', 'run'] as const)
          for (const known of [undefined, 3])
            for (const { start, end } of goldRanges(files, () => known, rule))
              must(
                Number.isSafeInteger(start) && Number.isSafeInteger(end) && 1 <= start && start <= end,
                `a range from ${start} to ${end}`,
              )
        outcomes.push(
          [...new Set(files.map(file => `${file.status}${file.binary}${file.hunks.length > 0}${file.similarity === null}`))].sort().join(),
        )
      } catch (error) {
        if (!(error instanceof PatchFault)) throw error
        must(Number.isInteger(error.line) && 1 <= error.line && error.line <= lines, `an error at line ${error.line} of ${lines}`)
        outcomes.push(`${error.code} ${outline(error.message)}`)
      }
    }
    return outcomes.join()
  },
}
export default target

function checkHunk({ oldStart, oldCount, newStart, newCount, runs }: Hunk): void {
  const sum = (side: 'removed' | 'added') => runs.reduce((total, run) => total + run[side], 0)
  must(sum('removed') <= oldCount && sum('added') <= newCount, 'more lines than the hunk has')
  for (const run of runs) {
    must(run.removed > 0 || run.added > 0, 'a run without a change')
    if (run.removed > 0)
      must(run.oldLine >= Math.max(1, oldStart) && run.oldLine + run.removed <= oldStart + oldCount, 'a removed line outside the hunk')
    if (run.added > 0) must(run.newLine >= newStart && run.newLine + run.added <= newStart + newCount, 'an added line outside the hunk')
  }
}
