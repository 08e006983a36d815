import { commandGroup } from './command.js'
import awr from './train-awr.js'
import grpo from './train-grpo.js'
import sft from './train-sft.js'

export default commandGroup({
  name: 'cg-train',
  about: 'train a search agent from rollouts: a LoRA adapter, or all of a model',
  notes: [
    'Writes one `step` record for each optimiser step. A run directory (--publish) makes every step a version that survives any crash; --out gets the adapter in the end (with sft --full the model).',
  ],
  subcommands: { sft, awr, grpo },
  examples: [
    ['teach a small model by a scripted teacher', 'cg-rollout --policy lexical instances.ndjson | cg-train sft --model MODEL --out sft'],
    ['what is learnt by doing', 'cg-train grpo --help'],
  ],
})
