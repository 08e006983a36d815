/** Tests of a TAP stream: leaves only, a subtest counts through its own tests. */
export type Count = { passed: number; failed: number /** Names of what failed, from the outside in. */; failures: string[] }

/**
 * Counts the tests of a TAP 14 text. A parent that failed although none of its tests did (a plan that does not fit, a crash, a time limit) is a failure of its
 * own; a text without any test is one failure.
 */
export function countTap(text: string): Count {
  const count: Count = { passed: 0, failed: 0, failures: [] }
  /** Failed leaves at or below each depth since the last result there; undefined: no results. */
  const below: ({ failed: number } | undefined)[] = []
  let inYaml = ''
  for (const line of text.split('\n')) {
    const [, space = '', rest = ''] = /^( *)(.*)$/.exec(line) ?? []
    if (inYaml) {
      if (rest === '...' && space === inYaml) inYaml = ''
      continue
    }
    if (rest === '---') {
      inYaml = space
      continue
    }
    const found = /^(not )?ok\b ?\d*(.*)$/.exec(rest)
    if (!found) continue
    const depth = space.length / 4
    const todo = /#\s*(todo|skip)/i.test(found[2]!)
    const bad = found[1] !== undefined && !todo
    const children = below[depth + 1]
    below.length = depth + 1
    const own = below[depth] ?? { failed: 0 }
    below[depth] = own
    if (children) {
      own.failed += children.failed
      if (!bad || children.failed > 0) continue
    }
    if (bad) {
      own.failed++
      count.failed++
      count.failures.push(found[2]!.replace(/^ - /, '').trim())
    } else count.passed++
  }
  if (count.passed + count.failed === 0) {
    count.failed = 1
    count.failures.push('no test was run')
  }
  return count
}
