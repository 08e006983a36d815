import type { Aggregation } from '../engine/types.js'
import { planLines } from '../train/plan.js'
import { trainPolicy } from '../train/train-policy.js'
import { command } from './command.js'
import { option } from './options.js'
import { commonOptions, recipeOption } from './train-options.js'
import { resolveRecipe } from './train-run.js'

export default command({
  name: 'cg-train grpo',
  about: 'policy-gradient training on rewarded rollouts, on-policy or from files',
  reads: ['rollout'],
  writes: ['step'],
  notes: [
    'A step is what arrives up to a barrier; in input without barriers it is --prompts-per-step groups. On-policy, cg-rollout samples step k from version k - lag of the --publish directory, and waits for it.',
    'A loss of about 0 is expected on-policy: the advantages of a group sum to 0. Watch reward, kl, entropy and grad_norm instead.',
    'Rollouts sampled by this engine bring their log-probs, and mismatch says how far the trainer’s own are from them; others are scored again with the version that sampled them, or refused.',
    'The same command goes on after any interruption when it has --resume: committed steps are printed, not computed again.',
  ],

  options: {
    ...commonOptions,
    recipe: recipeOption('grpo'),
    lr: option.number(1e-5, 'peak learning rate', { min: 0 }),
    promptsPerStep: option.integer(8, 'groups a step; a barrier in the input wins', { min: 1, metavar: 'N' }),
    samplesPerPrompt: option.integer(8, 'rollouts a group', { alias: 'n', min: 1, metavar: 'N' }),
    lag: option.integer(0, 'step k is sampled from version k - N exactly', { min: 0, max: 64, metavar: 'N' }),
    aggregation: option.choice<Aggregation, Aggregation>(
      ['grpo', 'bnpo', 'dr_grpo', 'dapo', 'gspo', 'cispo'],
      'grpo',
      'what the loss is a mean of: rollouts (grpo, gspo), tokens (bnpo, dapo, cispo) or full lengths (dr_grpo)',
    ),
    epsilonLow: option.number(0.2, 'the ratio counts down to 1 - epsilon', { min: 0, max: 1 }),
    epsilonHigh: option.number(undefined, 'and up to 1 + epsilon; default as --epsilon-low', { min: 0, metavar: 'EPS' }),
    cispoCap: option.number(5, 'cispo: largest weight of a token', { min: 0 }),
    kl: option.number(0, 'coefficient of the KL term (k3); 0 costs nothing', { min: 0 }),
    klRef: option.choice<'base' | 'start', undefined>(
      ['base', 'start'],
      undefined,
      'what KL is measured from: the base model, or the adapter as training began; default start with --init-adapter, else base',
      {
        metavar: 'REF',
      },
    ),
    klBiasCorrection: option.flag('multiply the KL term by the ratio, gradient included'),
    maxCompletionLength: option.integer(4096, 'dr_grpo: tokens that every rollout counts for', { min: 1, metavar: 'N' }),
  },

  examples: [
    [
      'on-policy, three processes and one directory',
      'cg-rollout --policy native:MODEL --on-policy run instances.ndjson | cg-reward | cg-train grpo --model MODEL --publish run --steps 25 --resume',
    ],
    ['from a file', 'cg-train grpo --model MODEL --out adapter --lr 1e-4 rewarded.ndjson > steps.ndjson'],
    ['what a recipe means, and what memory it needs', 'cg-train grpo --model MODEL --out adapter --recipe codegrep --steps 2000 --dry-run'],
  ],

  run: (input, options, context) => trainPolicy(input, resolveRecipe('grpo', options, context), context),
  plan: async (options, context) => planLines('grpo', resolveRecipe('grpo', options, context), context.given),
})
