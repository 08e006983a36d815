import type { Bench } from './bench.js'
import { single } from './figure.js'
import { nativeBench } from './native-bench.js'

/** GFLOP/s of the plain backend by op and shape, one thread. */
export const reference: Bench = async function* () {
  for await (const { what, gflops } of nativeBench('--only', 'reference', '--dtype', 'fp32', '--threads', '1'))
    yield single({ bench: 'reference', what, unit: 'GFLOP/s', ours: gflops })
}
