import { execa } from 'execa'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import { plainNode } from '../pipeline/process.js'

type Report = { kind: string; device: string; logprobs: string; gradients: string }

const { features } = loadEngine().cpu()
/** Every set of this CPU, the widest last. */
const sets = [
  'scalar',
  ...(features.includes('avx2') && features.includes('fma') ? ['avx2'] : []),
  ...(features.includes('avx512f') ? ['avx512'] : []),
  ...(features.includes('avx512bf16') ? ['avx512bf16'] : []),
]

/** One process for each, as the set is chosen when the engine is loaded. */
async function run(backend: string, dtype: string, threads: number, isa: string): Promise<{ report: Report; faults: string }> {
  const { stdout, stderr } = await execa(
    plainNode[0],
    [...plainNode.slice(1), 'build/js/test/native/contract-run.js', backend, dtype, String(threads)],
    {
      env: { CG_ISA: isa },
      reject: false,
    },
  )
  return { report: JSON.parse(stdout || '{}') as Report, faults: stderr }
}

for (const dtype of ['fp32', 'bf16'])
  t.test(`${dtype}: a token's log-prob has the same bits however it is computed`, async t => {
    const plain = await run('reference', dtype, 1, sets.at(-1)!)
    t.equal(plain.faults, '', 'the reference')
    for (const isa of sets)
      for (const threads of isa === sets.at(-1) ? [1, 2, 3, 4] : [2]) {
        const { report, faults } = await run('cpu', dtype, threads, isa)
        const what = `${isa}, ${threads} threads`
        t.equal(faults, '', what)
        t.match(report.device, new RegExp(`${isa},`), what)
        t.equal(report.kind, plain.report.kind, what)
        t.equal(report.logprobs, plain.report.logprobs, `${what}: log-probs`)
        t.equal(report.gradients, plain.report.gradients, `${what}: gradients`)
      }
  })

t.test('an instruction set that does not exist is refused', async t => {
  const { faults } = await run('cpu', 'fp32', 1, 'sse9')
  t.match(faults, /CG_ISA=sse9 is no instruction set: scalar, avx2, avx512 or avx512bf16/)
})
