import { planLines } from '../train/plan.js'
import { trainWeighted } from '../train/train-weighted.js'
import { command } from './command.js'
import { option } from './options.js'
import { commonOptions, recipeOption, weightedOptions } from './train-options.js'
import { resolveRecipe } from './train-run.js'

export default command({
  name: 'cg-train awr',
  about: 'imitate rollouts turn by turn, each turn by its weight',
  reads: ['rollout'],
  writes: ['step'],
  notes: [
    'Advantage-weighted likelihood: every turn counts as its entry in `weights` says, which cg-reward has put into the records. No ratio, no clipping, no reference model.',
  ],
  options: { ...commonOptions, ...weightedOptions, recipe: recipeOption('awr'), lr: option.number(5e-5, 'peak learning rate', { min: 0 }) },
  examples: [['two passes over weighted rollouts', 'cg-train awr --model MODEL --init-adapter sft --out awr --epochs 2 weighted.ndjson']],

  run: (input, options, context) => trainWeighted('awr', input, resolveRecipe('awr', options, context), context),
  plan: async (options, context) => planLines('awr', resolveRecipe('awr', options, context), context.given),
})
