import t from 'tap'
import type { Known } from '#cg/record/item.js'
import type { StepRows } from '#cg/train/collect-steps.js'
import { denominators } from '#cg/train/denominators.js'
import { policyBatch } from '#cg/train/policy-batch.js'
import { policySequence, tokenRow } from '#cg/train/sequence.js'
import { group, item, type Made, madeRollout } from './made-rollouts.js'

const limits = { realVocab: 100, maxPositions: 50 }
const sequence = (over: Made = {}) => policySequence(item(madeRollout(over)), limits)

t.test('a rollout as a sequence', async t => {
  const made = sequence({ advantage: [0.5, -1] })!
  t.same(Array.from(made.ids), [10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
  t.same(Array.from(made.spans), [4, 6, 8, 10], 'pairs [begin, end)')
  t.same(Array.from(made.old!), [-1, -2, -3, -4])
  t.same(Array.from(made.advantages!), [0.5, -1], 'one per span')
  t.equal(made.temperature, 1)
})

t.test('one advantage for the whole rollout goes to every span', async t =>
  t.same(Array.from(sequence({ advantage: 2 })!.advantages!), [2, 2]),
)

t.test('a turn without generated tokens has no span, and its advantage no place', async t => {
  const tokens = { ids: [1, 2, 3], spans: [[1, 3, 1]] as [number, number, number][], logprobs: [-1, -1], logprob_kind: 'k' }
  t.same(Array.from(sequence({ tokens, advantage: [7, 9] })!.advantages!), [9])
})

t.test('temperature is the rollout’s own; greedy counts as 1', async t => {
  const at = (temperature: number) => sequence({ sampling: { ...madeRollout().sampling, temperature } })!.temperature
  t.same([at(0.7), at(0)], [0.7, 1])
})

t.test('a fault has no sequence', async t => t.equal(sequence({ stop: 'fault', tokens: undefined, advantage: undefined }), undefined))

const tokens = madeRollout().tokens!
const refused: [what: string, over: Made, code: string, message: RegExp][] = [
  ['without tokens', { tokens: undefined }, 'E_NO_TOKENS', /rollout r0 has no tokens \(it is text-only\): grpo needs the sampled ids/],
  ['without advantage', { advantage: undefined }, 'E_NO_ADVANTAGE', /has no advantage: pipe it through cg-reward first/],
  [
    'an id above the vocabulary',
    { tokens: { ...tokens, ids: [...tokens.ids.slice(0, 9), 100] } },
    'E_VOCABULARY',
    /token id 100 \(place 9\), and the model's vocabulary ends at 99/,
  ],
  ['too long', { tokens: { ...tokens, ids: Array(51).fill(1) } }, 'E_CONTEXT', /51 tokens, and the model has 50 positions/],
  ['a span that begins at 0', { tokens: { ...tokens, spans: [[0, 4, 0]] } }, 'E_TOKENS', /span \[0, 4, 0\]/],
  ['an empty span', { tokens: { ...tokens, spans: [[4, 4, 0]] } }, 'E_TOKENS', /span/],
  [
    'overlapping spans',
    {
      tokens: {
        ...tokens,
        spans: [
          [2, 5, 0],
          [4, 6, 1],
        ],
      },
    },
    'E_TOKENS',
    /span \[4, 6, 1\]/,
  ],
  ['a span behind the end', { tokens: { ...tokens, spans: [[8, 11, 0]] } }, 'E_TOKENS', /of 10 tokens/],
  ['a span of a turn that is not there', { tokens: { ...tokens, spans: [[4, 8, 2]] } }, 'E_TOKENS', /2 turns/],
  ['a log-prob too few', { tokens: { ...tokens, logprobs: [-1] } }, 'E_TOKENS', /1 log-probs for 4 generated tokens/],
  ['an advantage too many', { advantage: [1, 2, 3] }, 'E_TURNS', /3 advantages for 2 turns/],
]
for (const [what, over, code, message] of refused)
  t.test(`refuses ${what}`, async t => {
    const wrong = item(madeRollout(over))
    t.throws(() => policySequence(wrong, limits), { code, message, origin: wrong.origin })
  })

t.test('loss tokens of a row', async t => t.equal(tokenRow(tokens, 2, limits).lossTokens, 4))

const step = (asked: number, ...groups: Known<'rollout'>[][]): StepRows => ({
  kind: 'step',
  step: 0,
  groups: groups.map((rollouts, index) => ({ index, size: 2, rollouts })),
  asked,
  digest: 'd',
  replayed: false,
  onPolicy: false,
})
const never = (error: Error) => {
  throw error
}

t.test('faulty and dropped rollouts stay in the denominator of rollouts, not in that of tokens', async t => {
  const faulty = group('b', 1, 2, { stop: 'fault', tokens: undefined, advantage: undefined, reward: undefined })
  const batch = policyBatch(step(6, group('a', 0, 2), faulty), limits, never)
  t.same(
    batch.groups.map(g => [g.index, g.sequences.length]),
    [[0, 2]],
    'a group of faults is no trie',
  )
  t.same(batch.denominators, { rollouts: 6, tokens: 8 })
  t.match(batch.facts, { rollouts: 4, faults: 2 })
})

t.test('a step without any token divides by 1, not by 0', async t => t.same(denominators(0, []), { rollouts: 1, tokens: 1 }))

t.test('with -k what is refused counts like what was dropped', async t => {
  const [good, bad] = group('a', 0, 2) as [Known<'rollout'>, Known<'rollout'>]
  bad.record.tokens = undefined
  const seen: string[] = []
  const batch = policyBatch(step(2, [good, bad]), limits, error => seen.push(error.code))
  t.same(seen, ['E_NO_TOKENS'])
  t.same(batch.denominators, { rollouts: 2, tokens: 4 })
  t.throws(() => policyBatch(step(2, [good, bad]), limits, never), { code: 'E_NO_TOKENS' })
})

t.test('facts: means over what did not fail', async t => {
  const one = group('a', 0, 2, { reward: 1 })
  one[1]!.record.reward = 0
  const same = group('b', 1, 2, { reward: 0.5, stop: 'turns' })
  const fault = group('c', 2, 1, { stop: 'fault', reward: undefined, tokens: undefined, turns: [] })
  t.same(policyBatch(step(6, one, same, fault), limits, never).facts, {
    rollouts: 5,
    faults: 1,
    reward: 0.5,
    turns: 2,
    calls_per_turn: 1, // two calls in two turns
    answered: 0.5,
    zero_variance: 2, // b, and c, which has nothing to compare
  })
  t.match(policyBatch(step(4), limits, never).facts, { reward: null, turns: null, zero_variance: 0 })
})
