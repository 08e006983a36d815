import { groupBy } from '../eval/group-by.js'
import { commonRules, tableRows } from '../eval/table-rows.js'
import type { Score } from '../record/schema.js'
import { command } from './command.js'
import { formatOption, isText, tableOutput } from './eval-format.js'
import { collectScores, namedInput, readInput, scorable } from './eval-inputs.js'
import { option } from './options.js'

export default command({
  name: 'cg-eval table',
  about: 'one row of retrieval figures for each policy',
  notes: [
    'Reads rollouts or scores, from standard input or from files; NAME=FILE names the row of a file. F0.5 (mean and median), precision, recall and the share of F0.5 of at least 0.8 are over all rollouts; a rollout that failed or gave no answer counts as F 0. Turns, calls, tokens and seconds are means over the rollouts that did not fail.',
    'Scores that were made with different gold rules are refused.',
  ],
  reads: [...scorable],
  writes: ['table'],
  people: ({ format }, terminal) => isText(format, terminal),
  positionals: [{ name: 'NAME=FILE', about: 'a file of rollouts or scores, and what its row is called', optional: true, many: true }],
  standalone: (_, args) => (args['NAME=FILE']?.length ?? 0) > 0,
  options: {
    name: option.string(undefined, 'what all rows of standard input are called (default: the name of each policy)'),
    by: option.string(undefined, 'break each row down by a field of the instance, such as issue_kind', { metavar: 'FIELD' }),
    title: option.string('retrieval', 'the title of the table'),
    format: formatOption,
  },
  examples: [
    ['one table of several runs', 'cg-eval table base=base.ndjson sft=sft.ndjson grpo=grpo.ndjson'],
    ['where is it good, where not', 'cg-eval table --by issue_kind --format text < rollouts.ndjson'],
  ],

  async *run(input, { name, by, title, format }, context) {
    const text = isText(format, context.terminal)
    const collected = collectScores(context, by === undefined ? [] : [by])
    const inputs = context.args['NAME=FILE']!.map(namedInput)
    for (const named of inputs) for await (const item of readInput(named.file, context)) collected.take(item, named.name ?? name)
    for await (const item of input) {
      // A fault stays in the stream; rollouts and scores become the table.
      const taken = collected.take(item, name)
      if (!text && (!taken || item.kind === 'fault')) yield item
    }
    const scores = collected.finish()
    if (scores.length === 0) return
    for (const message of unequalSets(scores)) context.warn(message)
    yield* tableOutput({ kind: 'table', v: 1, title, gold_rules: commonRules(scores), rows: tableRows(scores, by) }, text, context)
  },
})

/** Rows over different instances do not compare. */
function unequalSets(scores: readonly Score[]): string[] {
  const sets = [...groupBy(scores, score => score.name)].map(([name, own]) => ({
    name,
    instances: new Set(own.map(score => score.instance_id)),
  }))
  const first = sets[0]!
  return sets
    .filter(({ instances }) => instances.size !== first.instances.size || [...instances].some(id => !first.instances.has(id)))
    .map(
      ({ name, instances }) =>
        `${name} (${instances.size}) and ${first.name} (${first.instances.size}) cover different instances: their rows do not compare`,
    )
}
