import { defaultAdvantage, groupAdvantages, zeroVariance } from '#cg/reward/group-advantage.js'
import { type SchemeName, schemes } from '#cg/reward/schemes.js'
import { callsPerTurn } from '#cg/score/calls-per-turn.js'
import { normalisePath } from '#cg/score/normalise-path.js'
import { type LineRange, type RangeMatch, rangeScore } from '#cg/score/range-score.js'
import { setScore } from '#cg/score/set-score.js'
import type { GoldenKind } from '../kind.js'
import { goldenFile } from './files.js'
import { worst } from './worst.js'

const bound = { value: 1e-9, unit: 'absolute' }
type Exact = { value: number }
type Triple = [path: string, start: number, end: number]

type SetCase = { name: string; pred: string[]; gold: string[]; beta: number; precision: Exact; recall: Exact; F: Exact }

const sets: GoldenKind<SetCase> = {
  name: 'scores/sets',
  bound,
  find: dir => goldenFile<{ cases: SetCase[] }>(dir, 'scores', 'sets.json')?.cases ?? [],
  run(c) {
    const seen = worst(bound.value)
    // The reference compares code points; NFC comes on top of it where the product compares paths (`comparedPath`).
    const score = setScore(c.pred.map(normalisePath), c.gold.map(normalisePath), c.beta)
    seen.near('precision', score.precision, c.precision.value)
    seen.near('recall', score.recall, c.recall.value)
    seen.near('F', score.f, c.F.value)
    return seen.result()
  },
}

type RangeExpected = { pairs: [Triple, Triple][]; predictions_scored: number; precision: Exact; recall: Exact; F: Exact }
type RangeCase = {
  name: string
  beta: number
  pred: Triple[]
  gold: Triple[]
  mined_only?: string[]
  expected: Record<RangeMatch, RangeExpected>
}

const ranges: GoldenKind<RangeCase> = {
  name: 'scores/ranges',
  bound,
  find(dir) {
    const file = goldenFile<{ beta: number; cases: Omit<RangeCase, 'beta'>[] }>(dir, 'scores', 'ranges.json')
    return file?.cases.map(c => ({ ...c, beta: file.beta })) ?? []
  },
  run(c) {
    const seen = worst(bound.value)
    const minedOnly = new Set((c.mined_only ?? []).map(normalisePath))
    for (const match of ['coverage', 'jaccard'] as const) {
      const expected = c.expected[match]
      const score = rangeScore(c.pred.map(lines), c.gold.map(lines), { beta: c.beta, match, minedOnly })
      seen.same(
        `${match} pairs`,
        score.pairs.map(pair => pair.map(triple)),
        expected.pairs,
      )
      seen.same(`${match} predictions scored`, score.scored, expected.predictions_scored)
      seen.near(`${match} precision`, score.precision, expected.precision.value)
      seen.near(`${match} recall`, score.recall, expected.recall.value)
      seen.near(`${match} F`, score.f, expected.F.value)
    }
    return seen.result()
  },
}

type RolloutCase = { calls: number[]; answered: boolean; files: string[]; ranges: Triple[] }
type RolloutExpected = {
  F_file: Exact
  F_lr_coverage: Exact
  F_lr_jaccard: Exact
  c_bar: Exact
  c_bar_exploring: Exact
  reward: Record<SchemeName, Exact>
  reward_jaccard: Partial<Record<SchemeName, Exact>>
  advantage_scale: Record<SchemeName, number>
}
type AdvantageExpected = {
  group: number[]
  scaled: number[]
  zero_variance: boolean
  std_none: number[]
  std_ddof_0: number[]
  'eps_1e-8': number[]
  loo_std_none: number[]
}
type GroupCase = {
  name: string
  gold_files: string[]
  gold_ranges: Triple[]
  mined_only?: string[]
  rollouts: RolloutCase[]
  expected: { rollouts: RolloutExpected[]; advantages: Record<SchemeName, AdvantageExpected> }
}

const codegrep: GoldenKind<GroupCase> = {
  name: 'scores/codegrep',
  bound,
  find: dir => goldenFile<{ cases: GroupCase[] }>(dir, 'scores', 'codegrep.json')?.cases ?? [],
  run(c) {
    const seen = worst(bound.value)
    const gold = c.gold_files.map(normalisePath)
    const minedOnly = new Set((c.mined_only ?? []).map(normalisePath))
    const scored = c.rollouts.map(rollout => {
      const [files, predicted] = rollout.answered ? [rollout.files, rollout.ranges] : [[], []]
      const fRange = (match: RangeMatch) => rangeScore(predicted.map(lines), c.gold_ranges.map(lines), { match, minedOnly }).f
      return {
        fFile: setScore(files.map(normalisePath), gold).f,
        fRange: fRange('coverage'),
        fJaccard: fRange('jaccard'),
        // The reference's `calls` are those that count, in every turn.
        callsPerTurn: callsPerTurn(rollout.calls, rollout.answered, 'paper'),
        exploring: callsPerTurn(rollout.calls, rollout.answered, 'exploring'),
      }
    })
    scored.forEach((s, n) => {
      const expected = c.expected.rollouts[n]!
      seen.near(`${n} F file`, s.fFile, expected.F_file.value)
      seen.near(`${n} F lr`, s.fRange, expected.F_lr_coverage.value)
      seen.near(`${n} F lr jaccard`, s.fJaccard, expected.F_lr_jaccard.value)
      seen.near(`${n} c̄`, s.callsPerTurn, expected.c_bar.value)
      const { calls, answered } = c.rollouts[n]!
      // It divides the calls of all turns, an answering one included, which `exploring` leaves out: comparable when that turn has none.
      if (!answered || calls.at(-1) === 0) seen.near(`${n} c̄ exploring`, s.exploring, expected.c_bar_exploring.value)
    })
    for (const name of Object.keys(schemes) as SchemeName[]) {
      const scheme = schemes[name]
      const rewards = scored.map(s => scheme.reward(s))
      const scales = scored.map(s => scheme.advantageScale(s))
      c.expected.rollouts.forEach((expected, n) => {
        seen.near(`${n} ${name}`, rewards[n]!, expected.reward[name].value)
        seen.near(`${n} ${name} scale`, scales[n]!, expected.advantage_scale[name])
        const jaccard = expected.reward_jaccard[name]
        if (jaccard) seen.near(`${n} ${name} jaccard`, scheme.reward({ ...scored[n]!, fRange: scored[n]!.fJaccard }), jaccard.value)
      })
      const expected = c.expected.advantages[name]
      const group = groupAdvantages(rewards)
      seen.same(`${name} zero variance`, zeroVariance(rewards), expected.zero_variance)
      const all = (what: string, actual: number[], wanted: number[], within = 1) =>
        wanted.forEach((value, n) => {
          seen.near(`${name} ${what} ${n}`, actual[n]! / within, value / within)
        })
      all('group', group, expected.group)
      all(
        'scaled',
        group.map((a, n) => a * scales[n]!),
        expected.scaled,
      )
      all('std none', groupAdvantages(rewards, { ...defaultAdvantage, std: 'none' }), expected.std_none)
      all('std ddof 0', groupAdvantages(rewards, { ...defaultAdvantage, ddof: 0 }), expected.std_ddof_0)
      all('eps 1e-8', groupAdvantages(rewards, { ...defaultAdvantage, eps: 1e-8 }), expected['eps_1e-8'], 10) // its bound is 1e-8
      all('leave one out', groupAdvantages(rewards, { ...defaultAdvantage, baseline: 'loo', std: 'none' }), expected.loo_std_none)
    }
    return seen.result()
  },
}

type OtherCase = { name: string }
const notBuilt = (name: string, ...path: string[]): GoldenKind<OtherCase> => ({
  name,
  find: dir => goldenFile<{ cases: OtherCase[] }>(dir, ...path)?.cases ?? [],
  run: () => ({ status: 'not built', message: `${name} has no implementation yet` }),
})

export const kinds: GoldenKind[] = [
  sets,
  ranges,
  codegrep,
  notBuilt('scores/a2agent', 'scores', 'a2agent.json'),
  notBuilt('scores/a2agent_code', 'scores', 'a2agent_code.json'),
  notBuilt('scores/catm', 'scores', 'catm.json'),
]

function lines([path, start, end]: Triple): LineRange {
  return { path: normalisePath(path), start, end }
}

function triple({ path, start, end }: LineRange): Triple {
  return [path, start, end]
}
