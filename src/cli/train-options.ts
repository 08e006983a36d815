import type { StoredType } from '../engine/types.js'
import { recipes } from '../train/recipes.js'
import type { Method } from '../train/settings.js'
import { option } from './options.js'

/** What every method takes. */
export const commonOptions = {
  model: option.string(undefined, 'checkpoint directory of the base model (Hugging Face), or its name under $CG_MODELS', {
    metavar: 'DIR',
  }),
  initAdapter: option.string(undefined, 'start from this PEFT adapter; else from a fresh one', { metavar: 'DIR' }),
  out: option.string(undefined, 'where the last adapter goes (PEFT)', { metavar: 'DIR' }),
  publish: option.string(undefined, 'run directory: every version is committed here, and an on-policy cg-rollout waits for it', {
    metavar: 'DIR',
  }),
  resume: option.flag('go on with the run in the --publish directory; begin when it is empty', { decides: false }),
  choose: option.choice(['last', 'best'], 'last', 'which version --out gets; best is by the figures of --eval-file', { decides: false }),
  loraRank: option.integer(16, 'rank of a fresh adapter', { min: 1, max: 4096 }),
  loraAlpha: option.number(32, 'the adapter counts alpha / rank times', { min: 0 }),
  loraTargets: option.string('all', 'linears to adapt: all, or some of q,k,v,o,gate,up,down', { metavar: 'LIST' }),
  schedule: option.choice(['constant', 'linear', 'cosine'], 'constant', 'how the learning rate goes after the warm-up'),
  warmup: option.number(0, 'steps over which the learning rate rises; below 1 a share of all steps', { min: 0 }),
  steps: option.integer(undefined, 'stop after N optimiser steps', { min: 1, metavar: 'N' }),
  beta1: option.number(0.9, 'AdamW: decay of the first moment', { min: 0, max: 1 }),
  beta2: option.number(0.999, 'AdamW: decay of the second moment', { min: 0, max: 1 }),
  adamEps: option.number(1e-8, 'AdamW: added to the root of the second moment', { min: 0 }),
  weightDecay: option.number(0, 'AdamW: decoupled weight decay', { min: 0 }),
  clip: option.number(1, 'largest norm of the gradient', { check: value => (value > 0 ? undefined : 'must be above 0') }),
  maxRowsPerPass: option.integer(undefined, 'token rows of one pass; default from the model: what fits 2 GiB', { min: 1, metavar: 'N' }),
  memory: option.number(
    undefined,
    'GiB of one pass: what does not fit is computed again in the backward pass; default half of the machine. Results do not depend on it',
    {
      check: value => (value > 0 ? undefined : 'must be above 0'),
      metavar: 'GIB',
      decides: false,
    },
  ),
  evalEvery: option.integer(undefined, 'measure on --eval-file every N steps, and after the last', {
    min: 1,
    metavar: 'N',
    decides: false,
  }),
  evalFile: option.string(undefined, 'instances (mean F0.5 of rollouts on them) or rollouts (mean loss), both held out', {
    metavar: 'FILE',
  }),
  evalSamples: option.integer(1, 'rollouts an instance when measuring: 1 is greedy, more are sampled at temperature 1', {
    min: 1,
    metavar: 'N',
    decides: false,
  }),
  keep: option.integer(0, 'keep at least the newest N versions; else the last few and the best', { min: 0, metavar: 'N', decides: false }),
  allowPartial: option.flag('train on what there is when the input ended early (files only)', { decides: false }),
  threads: option.integer(0, 'threads of the engine; 0 is one a core. Results do not depend on it', { min: 0, max: 1024, decides: false }),
  device: option.choice(['auto', 'cpu', 'reference', 'reference-remote'], 'auto', 'where the engine computes', { decides: false }),
  dtype: option.choice(['fp32', 'bf16'], 'fp32', 'precision of the products with frozen weights'),
}

/** Of `sft` and `awr`. */
export const weightedOptions = {
  epochs: option.integer(undefined, 'passes over the input; default 1, or as many as --steps need', { min: 1, metavar: 'N' }),
  batchSize: option.integer(16, 'rollouts a step', { min: 1, metavar: 'N' }),
  minReward: option.number(undefined, 'leave out rollouts with a smaller reward', { metavar: 'R' }),
  temperature: option.number(
    1,
    'temperature at which text-only rollouts are learnt (others bring their own). Fitted at T > 1, what is sampled at 1 afterwards is sharper',
    { min: 0.01, metavar: 'T' },
  ),
  prompt: option.choice(['full', 'brief'], undefined, 'opening of text-only rollouts; default: what the model’s cg.json says', {}),
}

/** Of `sft`: training of all weights. */
export const wholeOptions = {
  full: option.flag('train all weights of the model; --out and versions are checkpoints then'),
  init: option.choice<'random', undefined>(
    ['random'],
    undefined,
    'with --full: begin with random weights of the seed (normal, 0.02; norms 1)',
    {
      metavar: 'random',
    },
  ),
  modelConfig: option.string(
    undefined,
    'with --init random: the config.json of the new model; default that of --model, which has the tokenizer',
    {
      metavar: 'FILE',
    },
  ),
  saveDtype: option.choice<StoredType, undefined>(
    ['fp32', 'bf16', 'fp16'],
    undefined,
    'with --full: what checkpoints are stored as; default as they were',
    {
      metavar: 'TYPE',
    },
  ),
}

/** Recipes that say something about a method. */
export function recipeOption(method: Method) {
  const fitting = Object.entries(recipes).filter(([, recipe]) => recipe[method])
  const about = fitting.map(([name, recipe]) => `${name}: ${recipe.about}`).join('; ')
  return option.choice(
    fitting.map(([name]) => name),
    undefined,
    `options of a paper or a purpose, printed; your own win. ${about}`,
    { decides: false },
  )
}
