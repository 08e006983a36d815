/**
 * Weight of a turn's tokens in advantage-weighted regression, w = clip(exp(1.5 · clip(A, −5, 5)), 0.1, 3.0) (A2Agent; formulas 2.3).
 *
 * Schemes with one advantage a rollout give all its turns the same.
 */
export function turnWeight(advantage: number): number {
  const exponent = 1.5 * Math.min(Math.max(advantage, -5), 5)
  return Math.min(Math.max(Math.exp(exponent), 0.1), 3)
}
