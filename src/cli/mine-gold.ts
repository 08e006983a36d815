import { codegrepTarget } from '../gold/codegrep-target.js'
import { detectStrip } from '../gold/detect-strip.js'
import { goldFile } from '../gold/gold-files.js'
import { needsLineCount, type RangeRule } from '../gold/gold-ranges.js'
import { parsePatch } from '../gold/parse-patch.js'
import { PatchFault, type PatchFile } from '../gold/patch.js'
import { sha256 } from '../record/canonical.js'
import { RecordFault } from '../record/fault.js'
import type { Instance, Target } from '../record/schema.js'
import { mapRecords } from '../record/stage.js'
import { openTree } from '../tools/open-tree.js'
import { command } from './command.js'
import { option } from './options.js'

export default command({
  name: 'cg-mine gold',
  about: 'make the target of each instance from its gold patch',
  notes: [
    'Rule codegrep: every file of the patch is gold, by its old name where it has one; tests and documents too. Line ranges are on the old side, one a hunk from the first to the last removed line; a hunk that only inserts after line k has [k, k + 1]. New, copied and binary files have none.',
    'An instance that went through cg-worktree has its insertions at the end of a file clipped by the real number of lines; without that the patch alone decides.',
  ],
  reads: ['instance'],
  writes: ['instance', 'fault'],
  options: {
    rules: option.choice(['codegrep'], 'codegrep', 'the rule set; its name and version are in every target'),
    rangeRule: option.choice(['hunk', 'run'], 'hunk', 'one gold range a hunk, or one a run of changed lines'),
    strip: option.integer(
      undefined,
      'directories to cut from the names in the patch (default: 1, and 0 where both sides are spelt alike)',
      {
        min: 0,
        metavar: 'N',
      },
    ),
  },
  examples: [
    ['targets from the patches of SWE-bench rows', 'cg-mine gold swe-bench.jsonl > targets.ndjson'],
    ['in a pipe, with the files at hand', 'cg-worktree rows.jsonl | cg-mine gold | cg-rollout --policy lexical > rollouts.ndjson'],
  ],

  async *run(input, { rules, rangeRule, strip }, context) {
    yield* mapRecords(input, 'instance', { jobs: context.jobs, context }, async (instance, _, signal) => {
      const key = {
        stage: 'mine gold',
        version: 1,
        rules,
        rangeRule,
        strip: strip ?? null,
        patch: sha256(instance.patch ?? ''),
        tree: instance.worktree?.tree ?? null,
      }
      const cached = context.cache.get(key) as Target | undefined
      if (cached !== undefined) {
        context.count.cached++
        return { ...instance, target: cached }
      }
      const files = patchOf(instance, strip)
      const counts = await oldLineCounts(instance, files, signal)
      const target = codegrepTarget(files, path => counts.get(path), rangeRule as RangeRule)
      context.cache.put(key, target)
      return { ...instance, target }
    })
  },
})

function patchOf({ instance_id, patch }: Instance, strip: number | undefined): PatchFile[] {
  if (patch === undefined || patch.trim() === '')
    throw new RecordFault('E_PATCH', `${instance_id} has no patch to take the target from: use rows that have the field 'patch'`)
  try {
    return parsePatch(patch, strip ?? detectStrip(patch))
  } catch (error) {
    if (!(error instanceof PatchFault)) throw error
    throw new RecordFault('E_PATCH', `${instance_id}: line ${error.line} of its patch: ${error.message}`)
  }
}

/** Lines of the files whose ranges depend on them; of none when the record names no worktree, and not of links, which the tree does not show. */
async function oldLineCounts(instance: Instance, files: readonly PatchFile[], signal: AbortSignal): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const paths = files.filter(needsLineCount).map(goldFile)
  if (instance.worktree === undefined || paths.length === 0) return counts
  const tree = await openTree(instance, signal)
  for (const path of paths) {
    const found = await tree.read(path, signal)
    if (found.kind === 'file') counts.set(path, lineCount(found.bytes))
  }
  return counts
}

/** As git counts: what stands behind the last line feed is a line too. */
function lineCount(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines++
  return bytes.length > 0 && bytes.at(-1) !== 10 ? lines + 1 : lines
}
