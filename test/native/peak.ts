/**
 * peak.js BUDGET: what a training step adds to the resident memory of a process of its own, as JSON: {grown, passBytes, kept} in bytes.
 *
 * grown is the kernel's high-water mark during the step, less what was resident before it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { loadEngine } from '#cg/engine/load.js'

const status = (key: string) => 1024 * Number(new RegExp(`${key}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))![1])

const model = await loadEngine().loadModel('fixtures/model', { backend: 'cpu', threads: 1 })
const adapter = await model.newAdapter({ rank: 8, alpha: 8, targets: ['q_proj'] }, 0n)
const trainer = model.trainer(adapter, { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0 })

const step = (length: number) =>
  trainer.train({
    groups: [
      {
        index: 0,
        sequences: [{ ids: Int32Array.from({ length }, (_, i) => (i * 7) % 2000), spans: Int32Array.of(1, length), temperature: 1 }],
      },
    ],
    loss: { kind: 'weighted' },
    denominators: { rollouts: 1, tokens: length - 1 },
    maxRowsPerPass: 4096,
    memoryBudget: Number(process.argv[2]),
    lr: 0,
    clip: 0,
  })

await step(8)
const before = status('VmRSS')
writeFileSync('/proc/self/clear_refs', '5')
const { passBytes, kept } = await step(4000)
process.stdout.write(`${JSON.stringify({ grown: status('VmHWM') - before, passBytes, kept })}\n`)
