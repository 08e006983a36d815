import { commandGroup } from './command.js'
import compare from './eval-compare.js'
import score from './eval-score.js'
import table from './eval-table.js'

export default commandGroup({
  name: 'cg-eval',
  about: 'score rollouts, tabulate them, compare two policies',
  notes: ['All scores are file-level F with beta 0.5 against the target of the instance; cg-mine gold makes targets.'],
  examples: [
    ['score each rollout', 'cg-eval score rollouts.ndjson > scores.ndjson'],
    ['one table of several runs', 'cg-eval table base=base.ndjson sft=sft.ndjson --format text'],
    ['is the second better than the first', 'cg-eval compare sft=sft.ndjson grpo=grpo.ndjson'],
  ],
  subcommands: { score, table, compare },
})
