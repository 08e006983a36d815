import type { Target } from '../record/schema.js'
import { goldFiles } from './gold-files.js'
import { goldRanges, type OldLineCount, type RangeRule } from './gold-ranges.js'
import type { PatchFile } from './patch.js'

/** Name and version of the rule set: another way to make ranges is another rule set, and tables do not mix them. */
export const codegrepRules = { hunk: 'codegrep/1', run: 'codegrep-run/1' } as const satisfies Record<RangeRule, string>

/** What a patch makes gold under rule `codegrep`: all its files, and the old-side line ranges of those that exist there. */
export function codegrepTarget(files: readonly PatchFile[], oldLineCount: OldLineCount, rule: RangeRule = 'hunk'): Target {
  return {
    gold_rules: codegrepRules[rule],
    files: goldFiles(files).map(path => ({ path, weight: 1, source: 'patch' })),
    ranges: goldRanges(files, oldLineCount, rule),
    modules: [],
    functions: [],
  }
}
