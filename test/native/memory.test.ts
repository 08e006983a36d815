import { execa } from 'execa'
import t from 'tap'
import type { Keep, LoraConfig } from '#cg/engine/types.js'
import { passBytes } from '#cg/train/memory-estimate.js'
import { readModelShape } from '#cg/train/model-shape.js'
import { plainNode } from '../pipeline/process.js'
import { adam, adapterBytes, load, rank4, rolloutGroups, stepOf } from './setup.js'

const tiers: Keep[] = ['everything', 'all-but-mlp', 'layer-inputs']

t.test('gradients and updates have the same bits whatever is kept for the backward pass', async t => {
  const model = await load()
  const results = []
  const planned: number[] = []
  for (const keep of tiers) {
    const memoryBudget = keep === 'everything' ? Number.MAX_SAFE_INTEGER : keep === 'layer-inputs' ? 0 : planned[0]! - 1
    const request = { ...stepOf(rolloutGroups(2, 3)), memoryBudget }
    const trainer = model.trainer(await model.newAdapter(rank4, 3n), adam)
    const { stats: before, tensors } = await trainer.gradient(request)
    await trainer.train(request)
    const { passBytes, kept, ...stats } = await trainer.train(request)
    t.equal(kept, keep)
    t.equal(before.kept, keep)
    planned.push(passBytes)
    results.push({
      stats,
      gradient: tensors.map(tensor => Buffer.from(tensor.values.buffer).toString('hex')),
      adapter: await adapterBytes(trainer.trained),
    })
    trainer.dispose()
  }
  t.ok(planned[0]! > planned[1]! && planned[1]! > planned[2]!, planned.join(' '))
  t.strictSame(results[1], results[0])
  t.strictSame(results[2], results[0])
})

t.test('the engine plans what --dry-run says', async t => {
  const model = await load('fixtures/model')
  const shape = readModelShape('fixtures/model')
  const lora: LoraConfig = { rank: 8, alpha: 8, targets: ['q_proj', 'o_proj', 'down_proj'] }
  const trainer = model.trainer(await model.newAdapter(lora, 0n), adam)
  const ids = Int32Array.from({ length: 600 }, (_, i) => (i * 7) % 2000)
  for (const keep of tiers) {
    const said = passBytes(shape, lora, 600, 599, keep)
    const { kept, passBytes: planned } = await trainer.evaluate({
      groups: [{ index: 0, sequences: [{ ids, spans: Int32Array.of(1, 600), temperature: 1 }] }],
      loss: { kind: 'weighted' },
      denominators: { rollouts: 1, tokens: 599 },
      maxRowsPerPass: 4096,
    })
    t.equal(kept, 'nothing', 'an evaluation has no backward pass')
    t.ok(planned < said)
    const stats = (
      await trainer.gradient({
        groups: [{ index: 0, sequences: [{ ids, spans: Int32Array.of(1, 600), temperature: 1 }] }],
        loss: { kind: 'weighted' },
        denominators: { rollouts: 1, tokens: 599 },
        maxRowsPerPass: 4096,
        memoryBudget: said * 1.02,
      })
    ).stats
    t.equal(stats.kept, keep)
    t.ok(Math.abs(stats.passBytes / said - 1) < 0.02, `planned ${stats.passBytes}, said ${said}`)
  }
})

t.test('a step takes what was planned for it', async t => {
  for (const budget of [2 ** 40, 0]) {
    const { stdout } = await execa(plainNode[0], [...plainNode.slice(1), 'build/js/test/native/peak.js', String(budget)])
    const { grown, passBytes, kept } = JSON.parse(stdout) as { grown: number; passBytes: number; kept: string }
    t.ok(Math.abs(grown / passBytes - 1) < 0.1, `${kept}: grew by ${grown}, planned ${passBytes}`)
  }
})
