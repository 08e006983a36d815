import { planLines } from '../train/plan.js'
import { trainWeighted } from '../train/train-weighted.js'
import { command } from './command.js'
import { option } from './options.js'
import { commonOptions, recipeOption, weightedOptions } from './train-options.js'
import { resolveRecipe } from './train-run.js'

export default command({
  name: 'cg-train sft',
  about: 'imitate rollouts: maximum likelihood of their turns',
  reads: ['rollout'],
  writes: ['step'],
  notes: [
    'Learns what the assistant wrote, end of turn included; prompts and tool results have no loss. Text-only rollouts are tokenised once, as a native rollout of the model would be.',
    'Reads the whole input before the first step; every pass over it is shuffled by the seed. --min-reward keeps the good rollouts only (rejection sampling).',
  ],
  options: { ...commonOptions, ...weightedOptions, recipe: recipeOption('sft'), lr: option.number(2e-4, 'peak learning rate', { min: 0 }) },
  examples: [
    ['imitate a teacher', 'cg-rollout --policy lexical -n 4 --max-calls 1 instances.ndjson | cg-train sft --model MODEL --out sft'],
    ['only what scored at least 0.8', 'cg-train sft --model MODEL --out sft --min-reward 0.8 rewarded.ndjson'],
  ],

  run: (input, options, context) => trainWeighted('sft', input, resolveRecipe('sft', options, context), context),
  plan: async (options, context) => planLines('sft', resolveRecipe('sft', options, context), context.given),
})
