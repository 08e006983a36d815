/** What a scheme scores: F of the files, F of the line ranges, and mean calls a turn c̄. */
export type RolloutScores = { fFile: number; fRange: number; callsPerTurn: number }

/** A reward, and the factor that multiplies the advantage after the group is normalised. */
export type Scheme = { about: string; reward(s: RolloutScores): number; advantageScale(s: RolloutScores): number }

const called = (s: RolloutScores) => (s.callsPerTurn > 0 ? 1 : 0)
const parallelism = (s: RolloutScores) => Math.sqrt(Math.min(s.callsPerTurn / 4, 1))

/** CodeGrep's three reward designs (section 3.5; formulas 1.4). */
export const schemes = {
  'codegrep-v1': {
    about: '½(F_file + F_lr) / max(1, c̄/4)',
    reward: s => (0.5 * (s.fFile + s.fRange)) / Math.max(1, s.callsPerTurn / 4),
    advantageScale: () => 1,
  },
  'codegrep-v2': {
    about: '½(F_file + F_lr) if any call was made; advantage · √min(c̄/4, 1)',
    reward: s => 0.5 * (s.fFile + s.fRange) * called(s),
    advantageScale: parallelism,
  },
  'codegrep-v3': {
    about: 'F_file if any call was made; advantage · √min(c̄/4, 1)',
    reward: s => s.fFile * called(s),
    advantageScale: parallelism,
  },
} as const satisfies Record<string, Scheme>

export type SchemeName = keyof typeof schemes
