import type { Step } from '../record/schema.js'

/** What an evaluation says of a version; it stands in the version's `step` record as `eval`. */
export type Figure = {
  /** `f05`: mean F0.5 of rollouts on held-out instances, the higher the better. `loss`: mean loss of held-out rollouts, the lower the better. */
  name: 'f05' | 'loss'
  value: number
  /** Rollouts it is the mean of. */
  n: number
}

/** Follows which version has the best figure, the earliest of equal ones: undefined while none has been measured. The records themselves are not kept. */
export function followBest(steps: readonly Step[]): { add(step: Step): void; version(): number | undefined } {
  let best: { version: number; figure: Figure } | undefined
  const add = ({ version, ...rest }: Step) => {
    const figure = rest.eval as Figure | undefined
    if (figure === undefined || !Number.isFinite(figure.value)) return
    if (best === undefined || better(figure, best.figure)) best = { version, figure }
  }
  steps.forEach(add)
  return { add, version: () => best?.version }
}

function better(one: Figure, other: Figure): boolean {
  return one.name === 'loss' ? one.value < other.value : one.value > other.value
}
