import type { Say } from './bench.js'

/**
 * Runs ways of doing one thing in turn (a, b, a, b …), so that other load on the machine meets all alike, after a round that only warms up.
 *
 * A way does it once and gives its own measure, for example CPU seconds. Returns every way's measures, one a round.
 */
export async function interleave<Name extends string>(
  ways: Record<Name, () => Promise<number>>,
  say: Say,
  rounds = 3,
): Promise<Record<Name, number[]>> {
  const measures = Object.fromEntries(Object.keys(ways).map(name => [name, []])) as unknown as Record<Name, number[]>
  for (let round = 0; round <= rounds; round++)
    for (const name of Object.keys(ways) as Name[]) {
      const measure = await ways[name]()
      say(`${round === 0 ? 'warm-up' : `round ${round} of ${rounds}`}, ${name}: ${measure.toPrecision(4)}`)
      if (round > 0) measures[name].push(measure)
    }
  return measures
}
