import { mapRecords } from '../record/stage.js'
import { cachedScore } from './cached-score.js'
import { command } from './command.js'
import { option } from './options.js'

export default command({
  name: 'cg-eval score',
  about: 'turn each rollout into its score against the target',
  notes: [
    'A score has the file-level F0.5, precision and recall, turns, calls, calls per turn and generated tokens, and the fields issue_kind and misleads where the instance has them.',
    'A rollout without target has no score; such rollouts are counted. One that failed scores 0, one without a valid answer predicts nothing.',
  ],
  reads: ['rollout'],
  writes: ['score', 'fault'],
  options: {
    name: option.string(undefined, "what tables call the policy (default: the policy's name)"),
    field: option.list('keep this field of the instance in the score', { metavar: 'FIELD' }),
  },
  examples: [
    ['score each rollout', 'cg-eval score rollouts.ndjson > scores.ndjson'],
    ['the mean', "cg-eval score --no-run rollouts.ndjson | jq -s 'map(.f05) | add / length'"],
  ],

  async *run(input, { name, field }, context) {
    let withoutTarget = 0
    yield* mapRecords(input, 'rollout', { jobs: context.jobs, context }, rollout => {
      const score = cachedScore(rollout, { name, fields: field }, context)
      if (score === undefined) withoutTarget++
      return score ?? []
    })
    if (withoutTarget > 0)
      context.warn(`${withoutTarget} rollouts have no target and are not scored: run their instances through cg-mine gold first`)
  },
})
