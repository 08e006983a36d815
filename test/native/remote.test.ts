import t from 'tap'
import { adam, adapterBytes, load, plainSampling, rank4, rolloutGroups, stepOf, tiny, tokens } from './setup.js'

t.test('behind separate, lagging memory a training step and a rollout are the same', async t => {
  const results = []
  for (const backend of ['reference', 'reference-remote', 'cpu'] as const) {
    const model = await load(tiny, { backend })
    const trainer = model.trainer(await model.newAdapter(rank4, 3n), adam)
    const stats = [
      await trainer.train(stepOf(rolloutGroups(2, 3))),
      await trainer.train({ ...stepOf(rolloutGroups(3, 2)), maxRowsPerPass: 40 }),
    ]
    const sampler = model.sampler({ maxBatch: 3 })
    const adapter = await trainer.snapshot()
    const params = { ...plainSampling, topP: 0.9, repetitionPenalty: 1.1 }
    const generations = await Promise.all(
      [5, 70, 70, 1].map((length, i) =>
        sampler.generate({
          ids: tokens(length, length),
          adapter: i === 3 ? null : adapter,
          sampling: params,
          stopIds: new Int32Array(),
          maxTokens: 6,
          seed: 1n,
          rollout: BigInt(i),
          session: `${i}`,
        }),
      ),
    )
    await sampler.close()
    results.push({ stats, generations, bytes: (await adapterBytes(trainer.trained)).toString('hex'), kind: model.info.logprobKind })
  }
  t.strictSame(results[1], results[0])
  t.strictSame(results[2], results[0])
})
