import { defaultAdvantage, groupAdvantages, standardDeviation } from '#cg/reward/group-advantage.js'
import { type EngineCase, engineCases } from './cases.js'
import type { GoldenKind } from './kind.js'
import { measures } from './measure.js'

type Given = { scale_rewards: 'group' | 'batch' | 'none'; rewards: (number | null)[][]; advantages_f64: number[] }

/** Rewards to group advantages, as TRL scales them. */
export const advantages: GoldenKind<EngineCase<{ cases: Given[] }>> = {
  name: 'losses/advantages',
  find: root => engineCases(root, 'losses', meta => Array.isArray(meta.cases) && 'rewards' in (meta.cases[0] as object)),
  run({ meta }) {
    const seen = measures()
    meta.cases.forEach((given, i) => {
      const scored = given.rewards.flat().filter(r => r !== null)
      const options = { ...defaultAdvantage, std: given.scale_rewards, batchStd: standardDeviation(scored, 1) }
      const got = given.rewards.flatMap(group => groupAdvantages(group, options))
      seen.near('advantage', got, given.advantages_f64, 1e-9, `${i} (${given.scale_rewards})`)
    })
    return seen.result()
  },
}
