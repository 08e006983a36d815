import { type NamedScores, pairedDifference } from '../eval/paired-difference.js'
import { commonRules, tableRows } from '../eval/table-rows.js'
import { FatalError, UsageError } from '../record/fault.js'
import { type Context, command } from './command.js'
import { formatOption, isText, tableOutput } from './eval-format.js'
import { collectScores, namedInput, readInput } from './eval-inputs.js'
import { option } from './options.js'

export default command({
  name: 'cg-eval compare',
  about: 'the difference in F0.5 of a second policy against a first, with a paired bootstrap interval',
  notes: [
    'A and B are files of rollouts or scores, NAME=FILE or FILE. Each instance that both have counts once, with its mean over samples; instances are drawn again with replacement, and the interval holds the middle --level of the mean differences. The same --seed gives the same interval.',
  ],
  reads: [],
  writes: ['table'],
  standalone: true,
  positionals: [
    { name: 'A', about: 'the policy that B is compared with: NAME=FILE or FILE' },
    { name: 'B', about: 'the policy that is hoped to be better' },
  ],
  options: {
    resamples: option.integer(10_000, 'how often the instances are drawn again', { min: 100, max: 1_000_000, metavar: 'N' }),
    level: option.number(0.95, 'share of the drawn differences inside the interval', { min: 0.5, max: 0.999 }),
    title: option.string('comparison', 'the title of the table'),
    format: formatOption,
  },
  examples: [['is grpo better than sft', 'cg-eval compare sft=sft.ndjson grpo=grpo.ndjson']],

  async *run(_, { resamples, level, title, format }, context) {
    const [a, b] = [await scoresOf(context.args.A![0]!, context), await scoresOf(context.args.B![0]!, context)]
    if (a.name === b.name) throw new UsageError(`both policies are called ${a.name}: name them, as in old=FILE new=FILE`)
    const both = [...a.scores, ...b.scores]
    const gold_rules = commonRules(both)
    const difference = pairedDifference(a, b, { resamples, level, seed: context.seed })
    if (difference === undefined) throw new FatalError('E_INPUT', 'no instance is in both files: compare runs over the same instances')
    const all = new Set(both.map(score => score.instance_id)).size
    if (all > difference.instances)
      context.warn(`${all - difference.instances} instances are in one file only and left out of the difference`)
    yield* tableOutput(
      { kind: 'table', v: 1, title, gold_rules, rows: tableRows(both), difference },
      isText(format, context.terminal),
      context,
    )
  },
})

async function scoresOf(argument: string, context: Context): Promise<NamedScores> {
  const { file, name } = namedInput(argument)
  const collected = collectScores(context, [])
  for await (const item of readInput(file, context)) collected.take(item, name)
  const scores = collected.finish()
  const names = new Set(scores.map(score => score.name))
  if (names.size === 0) throw new FatalError('E_INPUT', `${file} has no rollouts with a target`)
  if (names.size > 1)
    throw new FatalError(
      'E_INPUT',
      `${file} has rollouts of ${[...names].join(' and ')}: give one file a policy, or a name for all, NAME=${file}`,
    )
  return { name: [...names][0]!, scores }
}
