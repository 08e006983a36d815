/**
 * The shortest decimal that reads back to the same float32; of several the nearest. As `number`, so that JSON prints exactly those digits.
 *
 * 0.1f is the double 0.10000000149011612, and comes out as 0.1. NaN and infinities come back as they are.
 */
export function shortestFloat32(value: number): number {
  const x = Math.fround(value)
  if (x === 0 || !Number.isFinite(x)) return x
  for (let digits = 1; digits < 9; digits++) {
    const nearest = Number(x.toPrecision(digits))
    if (Math.fround(nearest) === x) return nearest
  }
  return Number(x.toPrecision(9)) // 9 digits always identify a float32
}
