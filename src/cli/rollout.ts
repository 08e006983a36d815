import { basename } from 'node:path'
import { onPolicy } from '../rollout/on-policy.js'
import { sampleInstances } from '../rollout/sample-instances.js'
import { type Context, command } from './command.js'
import { ask } from './rollout-ask.js'
import { type RolloutValues, resolveOptions, rolloutOptions } from './rollout-options.js'
import { type Setup, setUp } from './rollout-setup.js'
import { samplerMemory } from './sampler-memory.js'

export default command({
  name: 'cg-rollout',
  about: 'let a policy search repositories for the files that an issue is about',
  notes: [
    'A policy takes turns: it writes calls of the tools, which are run together, and sees what they gave, until it answers with files and line ranges. The ' +
      'rollouts of one instance are a group; they come in input order, adjacent, whatever runs at once.',
    'native:MODEL runs a checkpoint directory (or one in $CG_MODELS) in this process; @ADAPTER is a PEFT adapter directory. openai:URL asks a server; without ' +
      '--tokenizer its rollouts hold text and no tokens, which cg-train grpo refuses. lexical is a scripted agent: the samples of an instance (-n) make its ' +
      'searches in different orders, and with a small --max-calls it shows how to go on after one that found nothing.',
    'With --noise P the scripted agent varies what it searches for, how many calls a turn it makes and when it reads, as --seed and the rollout have it, and that share ' +
      'of its decisions is flawed (a generic or wrong search, a useless turn, giving up, a guess, the first match, a caller or a test, too many files): sessions ' +
      'for a base model that reinforcement learning can sharpen.',
    'With --on-policy DIR the steps, their size and the versions come from cg-train grpo --publish DIR; a barrier record ends each step. The same command ' +
      'goes on after any interruption.',
    'A rollout that was made before comes from the cache, with the same bytes.',
  ],
  reads: ['instance'],
  writes: ['rollout', 'barrier'],
  standalone: options => options.repo !== undefined,
  people: true,
  jobs: 64,
  options: rolloutOptions,
  examples: [
    ['the scripted agent on prepared instances', 'cg-worktree tasks.jsonl | cg-rollout --policy lexical > lexical.ndjson'],
    [
      'eight samples of a model with an adapter',
      'cg-worktree tasks.jsonl | cg-rollout --policy native:model@adapter -n 8 > rollouts.ndjson',
    ],
    ['one question about this repository', 'cg-rollout --repo . --issue issue.txt'],
    [
      'on-policy training',
      'cg-worktree train.jsonl | cg-rollout --policy native:model --on-policy run | cg-reward | cg-train grpo --model model --publish run --resume',
    ],
  ],

  async plan(options, context) {
    const resolved = resolveOptions(options, context.given)
    const { policy, onPolicy: dir, samplesPerPrompt: n, temperature, topP, topK, minP, repetitionPenalty } = resolved.options
    const { maxTokens, maxTurns, maxCalls } = resolved.options
    return [
      ...resolved.lines,
      `policy ${policy}, ${dir === undefined ? `${n} per instance` : `on-policy in ${dir}`}`,
      `temperature ${temperature}, top-p ${topP}, top-k ${topK}, min-p ${minP}, repetition penalty ${repetitionPenalty}`,
      `at most ${maxTokens} tokens, ${maxTurns} turns, ${maxCalls} calls a turn`,
      ...samplerMemory(resolved.options),
    ]
  },

  async *run(input, given, context) {
    const { options, lines } = resolveOptions(given, context.given)
    for (const line of lines) context.say(line)
    const setup = await setUp(options, context)
    try {
      if (options.repo !== undefined) yield* ask(options, setup, context)
      else if (options.onPolicy !== undefined) yield* onPolicy(input, onPolicyOptions(options, setup, context), context)
      else {
        const { jobs } = context
        const precious = options.policy.startsWith('openai:')
        yield* sampleInstances(input, setup.sampler, { jobs, promptsPerStep: options.promptsPerStep, precious, context })
      }
    } finally {
      await setup.close()
    }
  },
})

function onPolicyOptions(options: RolloutValues, { native, sampler, settings }: Setup, { given, seed }: Context) {
  const stated = (name: string, value: number | undefined) => (given(name) ? value : undefined)
  return {
    dir: options.onPolicy!,
    waitMs: options.wait * 1000,
    dropLast: options.dropLast,
    model: native!,
    modelName: basename(options.policy.replace(/\/+$/, '').replace(/^native:/, '')),
    sampler,
    settings,
    stated: {
      promptsPerStep: stated('promptsPerStep', options.promptsPerStep),
      samples: stated('samplesPerPrompt', options.samplesPerPrompt),
      seed: given('seed') ? seed : undefined,
    },
  }
}
