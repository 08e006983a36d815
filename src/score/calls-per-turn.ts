/** Which turns count: `answer-free` leaves out the calls of the answering turn, `paper` counts them, `exploring` leaves out the turn as well. */
export type CountTurns = 'answer-free' | 'paper' | 'exploring'

/**
 * Mean number of tool calls a turn, c̄ = C_total / T (CodeGrep, section 3.5; formulas 1.3).
 *
 * C_total counts every call issued, failed and over-budget ones too. T counts assistant turns, the answering one included, whose own calls are not run and
 * do not count: junk calls beside an answer would open the gate otherwise. No turn left: 0. Can exceed 8.
 *
 * @param calls issued calls of each assistant turn, in order
 * @param answered the last turn is the answer
 */
export function callsPerTurn(calls: readonly number[], answered: boolean, count: CountTurns = 'answer-free'): number {
  const exploring = answered ? calls.slice(0, -1) : calls
  const turns = count === 'exploring' ? exploring.length : calls.length
  if (turns === 0) return 0
  const total = (count === 'paper' ? calls : exploring).reduce((sum, n) => sum + n, 0)
  return total / turns
}
