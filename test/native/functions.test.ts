import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import { plainSampling, scratch } from './setup.js'

const engine = loadEngine()

t.test('a reader that closed its end is noticed', t =>
  scratch(async dir => {
    const fifo = join(dir, 'fifo')
    execFileSync('mkfifo', [fifo])
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(fifo, constants.O_WRONLY)
    t.equal(engine.readerGone(writer), false)
    closeSync(reader)
    t.equal(engine.readerGone(writer), true)
    closeSync(writer)
    t.equal(engine.readerGone(openSync(join(dir, 'file'), 'w')), false, 'a file has no reader to lose')
  }),
)

t.test('schedules', async t => {
  const rate = (schedule: 'constant' | 'linear' | 'cosine', step: number) => engine.learningRate(schedule, 2, step, 4, 12)
  t.strictSame(
    [0, 1, 4].map(step => rate('constant', step)),
    [0, 0.5, 2],
  )
  t.strictSame(
    [2, 4, 8, 12, 20].map(step => rate('linear', step)),
    [1, 2, 1, 0, 0],
  )
  t.strictSame(
    [3, 4, 12, 20].map(step => rate('cosine', step)),
    [1.5, 2, 0, 0],
  )
  t.ok(Math.abs(rate('cosine', 8) - 1) < 1e-15)
  t.equal(engine.learningRate('constant', 2, 0, 0, 10), 2, 'no warm-up')
  t.throws(() => engine.learningRate('exponential' as never, 1, 1, 1, 1), { code: 'E_SHAPE' })
})

t.test('distributions', async t => {
  const logits = Float32Array.of(1, 3, 2, 3)
  const greedy = engine.sampleDistribution(logits, { ...plainSampling, temperature: 0 }, new Int32Array())
  t.strictSame([...greedy], [0, 1, 0, 0], 'greedy: ties to the lowest id')
  const penalised = engine.sampleDistribution(logits, { ...plainSampling, repetitionPenalty: 1e9, topK: 1 }, Int32Array.of(1, 1, 3))
  t.strictSame([...penalised], [0, 0, 1, 0])
  t.throws(() => engine.sampleDistribution(logits, plainSampling, Int32Array.of(4)), { code: 'E_VOCABULARY' })
  const sum = engine.sampleDistribution(logits, { ...plainSampling, topP: 0.9 }, new Int32Array()).reduce((a, b) => a + b)
  t.ok(Math.abs(sum - 1) < 1e-12)
})

t.test('the processor', async t => {
  const { model, features } = engine.cpu()
  t.ok(model.length > 0)
  t.ok(Array.isArray(features))
})
