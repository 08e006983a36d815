/**
 * The smallest input that still fails, as far as cutting pieces out finds it (half of it, a quarter … single bytes, again while that helps).
 *
 * `fails` is asked at most `tries` times.
 */
export async function minimise(input: Buffer, fails: (input: Buffer) => Promise<boolean>, tries: number): Promise<Buffer> {
  let best = input
  let left = tries
  for (let helped = true; helped && left > 0; ) {
    helped = false
    for (let size = Math.ceil(best.length / 2); size >= 1 && left > 0; size = size === 1 ? 0 : Math.ceil(size / 2))
      for (let from = 0; from < best.length && left > 0; ) {
        const shorter = Buffer.concat([best.subarray(0, from), best.subarray(from + size)])
        left--
        if (await fails(shorter)) {
          best = shorter
          helped = true
        } else from += size
      }
  }
  return best
}
