import t from 'tap'
import { countTap } from '../tap.js'

const cases: [name: string, text: string, passed: number, failed: number, failures?: string[]][] = [
  ['flat', 'TAP version 14\nok 1 - a\nnot ok 2 - b\nok 3\n1..3\n', 2, 1, ['b']],
  ['a subtest counts through its tests', '# Subtest: f\n    ok 1 - a\n    ok 2 - b\n    1..2\nok 1 - f\n1..1\n', 2, 0],
  ['two levels', '    # Subtest: g\n        ok 1 - a\n        not ok 2 - b\n    not ok 1 - g\n    ok 2 - c\nnot ok 1 - f\n', 2, 1, ['b']],
  ['a parent that fails by itself', '    ok 1 - a\n    1..2\nnot ok 1 - f\n    ok 1 - b\nok 2 - g\n', 2, 1, ['f']],
  ['a file that crashed', 'not ok 1 - f.test.js\n  ---\n  exitCode: 1\n  ...\n', 0, 1, ['f.test.js']],
  ['skipped and todo are no failures', 'ok 1 - a # SKIP no groff\nnot ok 2 - b # TODO later\n', 2, 0],
  ['diagnostics are no tests', 'not ok 1 - a\n  ---\n  ok 5 - no\n  not ok 6 - no\n  ...\nok 2 - b\n', 1, 1, ['a']],
  ['nothing at all', 'Segmentation fault\n', 0, 1, ['no test was run']],
]
for (const [name, text, passed, failed, failures = []] of cases)
  t.test(name, async t => t.same(countTap(text), { passed, failed, failures }))
