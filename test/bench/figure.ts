import { quantile } from '#cg/eval/averages.js'

/** One line of `make bench`: a figure of ours, and where there is one, that of a peer from the same run. */
export type Figure = {
  bench: string
  /** Which of the bench's figures: precision, shape, tool. */
  what: string
  /** Medians. */
  ours: number
  peer: number | null
  peer_name: string | null
  unit: string
  /** How many times better ours is than the peer. */
  ratio: number | null
  /** What `ratio` shall be at least; without a peer, what `ours` shall be at most. */
  target: number | null
  ok: boolean | null
  threads: number
}

/** Seconds, rates and shares to four digits. */
function rounded(x: number): number {
  return Number(x.toPrecision(4))
}

const median = (values: readonly number[]) => quantile(values, 0.5) ?? Number.NaN

type Compared = {
  bench: string
  what: string
  unit: string
  /** One value a run. */
  ours: readonly number[]
  peer: readonly number[]
  peerName: string
  /** Of times less is better, of rates more. */
  better: 'less' | 'more'
  target?: number
  /** Default: 1. */
  threads?: number
}

/** A figure beside a peer's. */
export function compared({ bench, what, unit, ours, peer, peerName, better, target, threads = 1 }: Compared): Figure {
  const [mine, other] = [median(ours), median(peer)]
  const ratio = better === 'less' ? other / mine : mine / other
  return {
    bench,
    what,
    ours: rounded(mine),
    peer: rounded(other),
    peer_name: peerName,
    unit,
    ratio: rounded(ratio),
    target: target ?? null,
    ok: target === undefined ? null : ratio >= target,
    threads,
  }
}

/** A figure without a peer; `most` is what it may be at most. */
export function single({
  bench,
  what,
  unit,
  ours,
  most,
}: {
  bench: string
  what: string
  unit: string
  ours: number
  most?: number
}): Figure {
  return {
    bench,
    what,
    ours: rounded(ours),
    peer: null,
    peer_name: null,
    unit,
    ratio: null,
    target: most ?? null,
    ok: most === undefined ? null : ours <= most,
    threads: 1,
  }
}
