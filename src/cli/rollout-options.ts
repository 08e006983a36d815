import { UsageError } from '../record/fault.js'
import { type OptionValues, option } from './options.js'
import { toolOptions } from './tool-options.js'
import { storeOption } from './worktree-options.js'

export const rolloutOptions = {
  policy: option.string(
    undefined,
    'who answers: native:MODEL[@ADAPTER], openai:URL[#NAME], bm25[:K], lexical (default with --repo) or replay:FILE',
    {
      metavar: 'POLICY',
      decides: false, // it says where a policy is; what it is stands in every rollout
    },
  ),
  noise: option.number(0, 'lexical: this share of its decisions is flawed, the others vary; 0: the same every time', {
    min: 0,
    max: 1,
    metavar: 'P',
  }),
  samplesPerPrompt: option.integer(1, 'rollouts of each instance: one group', { alias: 'n', min: 1, max: 4096, metavar: 'N' }),
  promptsPerStep: option.integer(undefined, 'groups of one step of training; numbers the groups', { min: 1, metavar: 'N' }),
  recipe: option.choice(['codegrep'], undefined, "a paper's settings where you say nothing: sampling, limits, samples; prints them"),

  toolset: option.choice(['codegrep'], 'codegrep', 'the tools: grep, glob and read'),
  prompt: option.choice(['full', 'brief'], undefined, "style of the prompt; default the model's own (its cg.json), else full"),
  thinking: option.choice(['off', 'on'], 'off', 'thoughts before each turn, for models that have them'),

  temperature: option.number(1, 'sampling temperature; 0 is greedy', { min: 0, max: 100, metavar: 'T' }),
  topP: option.number(1, 'sample among the likeliest tokens of this total probability', { min: 0, max: 1, metavar: 'P' }),
  topK: option.integer(0, 'sample among the K likeliest tokens; 0: all', { min: 0, metavar: 'K' }),
  minP: option.number(0, 'leave out tokens below this share of the likeliest', { min: 0, max: 1, metavar: 'P' }),
  repetitionPenalty: option.number(1, 'divide the odds of tokens that were used; 1: off', { min: 0.01, max: 100, metavar: 'X' }),
  greedy: option.flag('always the likeliest token: --temperature 0'),

  maxTokens: option.integer(4096, 'generated tokens of one rollout', { min: 1, metavar: 'N' }),
  maxTurnTokens: option.integer(undefined, "generated tokens of one turn; default the model's own limit, else --max-tokens", {
    min: 1,
    metavar: 'N',
  }),
  maxContext: option.integer(undefined, "tokens of one rollout's context; default the model's own limit", { min: 16, metavar: 'N' }),
  maxTurns: option.integer(4, 'turns of one rollout, the answering one included', { min: 1, max: 1000, metavar: 'N' }),
  maxCalls: option.integer(8, 'calls of one turn that are run', { min: 1, max: 64, metavar: 'N' }),
  maxIssueChars: option.integer(undefined, "characters of an issue; default the model's own limit, else 16000", { min: 1, metavar: 'N' }),
  ...toolOptions,

  concurrency: option.integer(64, 'rollouts at once, so that their turns share batches; the output does not depend on it', {
    min: 1,
    max: 4096,
    metavar: 'N',
    decides: false,
  }),
  device: option.string('auto', 'where a native model runs: auto or cpu', { metavar: 'DEVICE', decides: false }),
  dtype: option.choice(['fp32', 'bf16'], 'fp32', 'precision of a native model’s products with frozen weights'),
  threads: option.integer(0, 'threads of a native model; 0: one a core; results do not depend on it', {
    min: 0,
    max: 1024,
    metavar: 'N',
    decides: false,
  }),
  tokenizer: option.string(
    undefined,
    "openai: send and get token ids, by this checkpoint's tokenizer and template; default chat, text only",
    { metavar: 'DIR' },
  ),
  keyFile: option.string(undefined, 'openai: file whose first line is the key; default $OPENAI_API_KEY', { metavar: 'FILE' }),
  requestTimeout: option.number(600, 'openai: seconds for one reply', { min: 0.1, metavar: 'SEC', decides: false }),
  retries: option.integer(2, 'openai: tries after the first', { min: 0, max: 100, metavar: 'N', decides: false }),

  onPolicy: option.string(undefined, 'sample for a trainer that publishes in this directory: its steps, versions and sizes', {
    metavar: 'DIR',
  }),
  wait: option.number(60, 'with --on-policy: seconds to wait for a trainer to show itself', { min: 0, metavar: 'SEC', decides: false }),
  dropLast: option.flag('with --on-policy: leave a last, smaller step out'),

  store: storeOption,
  repo: option.string(undefined, 'ask about the local repository at or above this directory, at its HEAD', {
    metavar: 'PATH',
    decides: false,
  }),
  issue: option.string(undefined, 'with --repo: file with the issue; - is standard input', { metavar: 'FILE' }),
}

type Values = OptionValues<typeof rolloutOptions>

/** Options after `resolveOptions`. */
export type RolloutValues = Omit<Values, 'policy'> & { policy: string }

/** CodeGrep, sections 3.3 and 3.6 and appendix A.4 (formulas 1.7): its sampling, limits and tools. */
const recipes: Record<'codegrep', Partial<RolloutValues>> = {
  codegrep: {
    samplesPerPrompt: 8,
    promptsPerStep: 64,
    temperature: 1,
    topP: 0.9,
    topK: 50,
    maxTokens: 4096,
    maxTurns: 4,
    maxCalls: 8,
    'grep-glob': '*.py',
  },
}

/**
 * Options with the recipe's values where the user said nothing, and a line for each of them; `--greedy` becomes a temperature.
 *
 * Throws UsageError for flags that contradict each other.
 */
export function resolveOptions(options: Values, given: (name: string) => boolean): { options: RolloutValues; lines: string[] } {
  const resolved: Record<string, unknown> = { ...options }
  const lines: string[] = []
  if (options.recipe) {
    lines.push(`recipe ${options.recipe}:`)
    for (const [name, value] of Object.entries(recipes[options.recipe])) {
      const flag = `--${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
      const own = given(name) && resolved[name] !== value
      if (!given(name)) resolved[name] = value
      lines.push(own ? `  ${flag} ${resolved[name]} (yours; the recipe has ${value})` : `  ${flag} ${value}`)
    }
  }
  if (options.greedy) {
    if (given('temperature') && options.temperature !== 0)
      throw new UsageError('--greedy and --temperature contradict each other: give one of them')
    resolved.temperature = 0
  }
  resolved.policy = options.policy ?? (options.repo === undefined ? undefined : 'lexical')
  if (resolved.policy === undefined) throw new UsageError('who answers? say --policy, for example --policy lexical')
  if (options.onPolicy !== undefined && options.repo !== undefined)
    throw new UsageError('--on-policy and --repo contradict each other: give one of them')
  if ((options.repo === undefined) !== (options.issue === undefined))
    throw new UsageError('--repo PATH and --issue FILE go together: give both')
  if (options.onPolicy === undefined && (given('wait') || given('dropLast')))
    throw new UsageError('--wait and --drop-last belong to --on-policy DIR')
  return { options: resolved as RolloutValues, lines }
}
