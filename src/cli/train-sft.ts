import { planLines } from '../train/plan.js'
import { trainWeighted } from '../train/train-weighted.js'
import { resolveWhole } from '../train/whole.js'
import { type Context, command } from './command.js'
import { option } from './options.js'
import { commonOptions, recipeOption, weightedOptions, wholeOptions } from './train-options.js'
import { resolveRecipe } from './train-run.js'

function resolved<O extends Parameters<typeof resolveWhole>[0] & { recipe: string | undefined }>(
  options: O,
  context: Context,
): O & { lr: number } {
  return resolveWhole(options.full ? options : resolveRecipe('sft', options, context), context.given)
}

export default command({
  name: 'cg-train sft',
  about: 'imitate rollouts: maximum likelihood of their turns',
  reads: ['rollout'],
  writes: ['step'],
  notes: [
    'Learns what the assistant wrote, end of turn included; prompts and tool results have no loss. Text-only rollouts are tokenised once, as a native rollout of the model would be.',
    'Reads the whole input before the first step; every pass over it is shuffled by the seed. --min-reward keeps the good rollouts only (rejection sampling).',
    '--full trains the model itself instead of an adapter: fp32 values of all weights, of which the model computes with what its checkpoint will hold; weight decay on matrices, not on norms, biases and embeddings. --out and every version of --publish are then whole checkpoints, with tokenizer and template, which every command and transformers load.',
  ],
  options: {
    ...commonOptions,
    ...weightedOptions,
    ...wholeOptions,
    recipe: recipeOption('sft'),
    lr: option.number(undefined, 'peak learning rate; default 2e-4, with --full 2e-5, with --init random 1e-3', { min: 0, metavar: 'LR' }),
    contextWeight: option.number(
      0,
      'loss weight of tokens that the model did not write: prompts, tool results. Above 0 for training from random weights, which have the language to learn, too',
      { min: 0, metavar: 'W' },
    ),
  },
  examples: [
    ['imitate a teacher', 'cg-rollout --policy lexical -n 4 --max-calls 1 instances.ndjson | cg-train sft --model MODEL --out sft'],
    ['only what scored at least 0.8', 'cg-train sft --model MODEL --out sft --min-reward 0.8 rewarded.ndjson'],
    ['go on teaching a model itself', 'cg-train sft --full --model MODEL --out better rewarded.ndjson'],
    [
      'a model of your own from nothing',
      'cg-train sft --full --init random --context-weight 0.2 --epochs 8 --model SMALL --out mine sessions.ndjson',
    ],
  ],

  run: (input, options, context) => trainWeighted('sft', input, resolved(options, context), context),
  plan: async (options, context) => planLines('sft', resolved(options, context), context.given),
})
