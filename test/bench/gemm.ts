import type { Bench } from './bench.js'
import { compared } from './figure.js'
import { machine } from './machine.js'
import { nativeBench } from './native-bench.js'

const targets = { fp32: 0.8, bf16: 0.7 }
/** Fewer rows are limited by reading the weights. */
const manyRows = 64

/**
 * Matrix products of the CPU backend by rows and shape, as shares of what this core's multiply-adds can do: medians of three runs of native-bench, one thread. bf16
 * is measured where the CPU has the instruction.
 */
export const gemm: Bench = async function* (say) {
  const { features } = await machine()
  for (const dtype of ['fp32', 'bf16'] as const) {
    if (dtype === 'bf16' && !features.includes('avx512bf16')) {
      say('bf16: this CPU has no instruction for it')
      continue
    }
    const runs = new Map<string, { gflops: number[]; peaks: number[] }>()
    for (let run = 0; run < 3; run++) {
      say(`${dtype}: run ${run + 1} of 3`)
      for await (const { what, gflops, share } of nativeBench('--only', 'cpu', '--threads', '1', '--dtype', dtype)) {
        if (!/^(matmul|matmul_backward|head_logp|head_backward) /.test(what)) continue
        if (share === undefined) throw new Error(`native-bench prints no share of the peak for ${what}`)
        const seen = runs.get(what) ?? { gflops: [], peaks: [] }
        seen.gflops.push(gflops)
        seen.peaks.push(gflops / share)
        runs.set(what, seen)
      }
    }
    for (const [what, { gflops, peaks }] of runs) {
      const rows = Number(/ (\d+)x\d+x\d+/.exec(what)?.[1])
      yield compared({
        bench: 'gemm',
        what: `${what}, ${dtype}`,
        unit: 'GFLOP/s',
        ours: gflops,
        peer: peaks,
        peerName: 'fp32 multiply-adds of a core at most',
        better: 'more',
        ...(rows >= manyRows ? { target: targets[dtype] } : {}),
      })
    }
  }
}
