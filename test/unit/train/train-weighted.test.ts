import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadEngine } from '#cg/engine/load.js'
import { loadChat } from '#cg/model/chat.js'
import { createTokenise } from '#cg/train/tokenise.js'
import { fakeRuntime, model, scratchDir, tensors, timeless, weightedRun } from './in-process.js'
import { item, type Made, madeRollout, stream, textRollout, texts } from './made-rollouts.js'

t.test('text-only rollouts get the tokens that a native rollout would have', async t => {
  const record = textRollout(0)
  const { ids, spans } = createTokenise(model, undefined)(record)
  const chat = loadChat(model, { thinking: false })
  const shown = chat.tokenizer.decode(ids)
  t.equal(
    shown,
    '<|im_start|>system\nFind the files to change. Tools: grep(pattern, path?, glob?), glob(pattern), read(path, start?, end?).<|im_end|>\n' +
      '<|im_start|>user\nRepository: o/p\n\nroute raises KeyError<|im_end|>\n<|im_start|>assistant\n' +
      '<tool_call>\n{"name": "grep", "arguments": {"pattern": "route"}}\n</tool_call><|im_end|>\n' +
      '<|im_start|>user\n<tool_response>\nsrc/route.py:1:def\n</tool_response><|im_end|>\n<|im_start|>assistant\n' +
      '<answer>{"files": ["src/route.py"]}</answer><|im_end|>',
  )
  t.same(
    spans.map(span => span[2]),
    [0, 1],
    'one span a turn',
  )
  t.same(
    spans.map(([begin, end]) => chat.tokenizer.decode(ids.slice(begin, end))),
    record.turns.map(turn => `${turn.text}<|im_end|>`),
    'a span is the turn with its end, the newline behind it is not in it',
  )
  const cut = textRollout(0, { turns: [{ ...record.turns[0]!, stop: 'length' }] })
  t.equal(chat.tokenizer.decode(createTokenise(model, undefined)(cut).ids.slice(-1)), '</tool_call>', 'a cut turn has no end')
  const long = textRollout(0)
  long.turns[0]!.calls[0]!.observation = 'def x\n'.repeat(4000)
  const first = createTokenise(model, undefined)(long)
  t.match(
    { cut: first.cut, spans: first.spans },
    { cut: true, spans: [spans[0]] },
    'an observation that does not fit ends it, as it would a native one',
  )
  t.equal(first.ids.length, spans[0]![1])
  const endless = createTokenise(model, undefined)(textRollout(0, { problem_statement: 'x y '.repeat(4000) }))
  t.same([endless.cut, endless.spans], [true, []], 'a prompt that fills the context leaves nothing to learn')
  t.match(chat.tokenizer.decode(createTokenise(model, 'full')(record).ids), /"name": ?"grep"/, 'full: with the tools’ schemas')
})

t.test('sft lowers the loss, and its versions stand', async t => {
  const publish = join(scratchDir(t), 'run')
  const out = join(scratchDir(t), 'out')
  const steps = await weightedRun('sft', texts(6), { publish, out, batchSize: 3, epochs: 3, lr: 3e-3 })
  t.equal(steps.length, 6)
  t.ok(steps[5]!.loss! < 0.8 * steps[0]!.loss!, `${steps[0]!.loss} to ${steps[5]!.loss}`)
  t.same(
    steps.map(s => s.version),
    [1, 2, 3, 4, 5, 6],
  )
  t.match(steps[0], { lr: 3e-3, rollouts: 3, kl: 0, digest: /^[0-9a-f]{64}$/ })
  t.same(readdirSync(publish).sort(), ['run.json', 'steps.ndjson', 'trainer.json', 'v000005', 'v000006'], 'the newest two, and no lock')
  t.match(JSON.parse(readFileSync(join(publish, 'trainer.json'), 'utf8')), { state: 'done' })
  t.same(readFileSync(join(out, 'adapter_model.safetensors')), tensors(publish, 'v000006')[0], '--out has the last version')
})

t.test('6 steps are 3 steps, and 3 more after a resume, bit for bit', async t => {
  const [whole, halves] = [join(scratchDir(t), 'a'), join(scratchDir(t), 'b')]
  const options = { batchSize: 3, weightDecay: 0.1, schedule: 'constant', warmup: 2 }
  const six = await weightedRun('sft', texts(6), { ...options, publish: whole, steps: 6 })
  await weightedRun('sft', texts(6), { ...options, publish: halves, steps: 3 })
  const runtime = fakeRuntime()
  runtime.count.in = 6
  const resumed = await weightedRun('sft', texts(6), { ...options, publish: halves, resume: true, steps: 6 }, runtime)
  t.same(resumed.map(timeless), six.map(timeless))
  t.same(tensors(halves, 'v000006'), tensors(whole, 'v000006'))
  t.equal(runtime.count.cached, 6, 'committed work counts as cached')
  t.same(
    (await weightedRun('sft', texts(6), { ...options, publish: halves, resume: true, steps: 6 })).map(timeless),
    six.map(timeless),
    'and again',
  )
})

t.test('threads do not change a bit', async t => {
  const results = []
  for (const threads of [1, 2, 4]) {
    const publish = join(scratchDir(t), 'run')
    const steps = await weightedRun('sft', texts(3), { publish, batchSize: 3, epochs: 2, threads })
    results.push([steps.map(timeless), tensors(publish, 'v000002')])
  }
  t.same(results[1], results[0])
  t.same(results[2], results[0])
})

t.test('the order of the input does not matter', async t => {
  const forward = await weightedRun('sft', texts(4), { out: join(scratchDir(t), 'o'), batchSize: 2 })
  const backward = stream([3, 2, 1, 0].map(n => item(textRollout(n))))
  t.same((await weightedRun('sft', backward, { out: join(scratchDir(t), 'o'), batchSize: 2 })).map(timeless), forward.map(timeless))
})

t.test('--min-reward keeps the good ones', async t => {
  const runtime = fakeRuntime()
  const [step] = await weightedRun('sft', texts(6), { out: join(scratchDir(t), 'o'), minReward: 0.5 }, runtime)
  t.match(step, { rollouts: 3 })
  t.ok(runtime.said.some(line => line.startsWith('3 rollouts left out')))
  await t.rejects(weightedRun('sft', texts(1, { reward: undefined }), { out: join(scratchDir(t), 'o'), minReward: 0.5 }), {
    code: 'E_NO_REWARD',
    message: /has no reward, and --min-reward asks for one: pipe it through cg-reward first/,
  })
})

t.test('--temperature: text fitted at T is the log-prob of its tokens at T; rollouts with tokens bring their own', async t => {
  const loss = async (input: ReturnType<typeof texts>, temperature: number) =>
    Number((await weightedRun('sft', input, { out: join(scratchDir(t), 'o'), temperature }))[0]!.loss)
  const { ids, spans } = createTokenise(model, undefined)(textRollout(0))
  const scored = await loadEngine().loadModel(model, { backend: 'reference', threads: 1 })
  for (const temperature of [1, 2]) {
    const sequence = { ids: Int32Array.from(ids), spans: Int32Array.from(spans.flatMap(span => span.slice(0, 2))), temperature }
    const { logprobs } = await scored.score({ sequences: [sequence], adapter: null })
    const mean = -logprobs.reduce((sum, value) => sum + value, 0) / logprobs.length
    t.ok(Math.abs((await loss(texts(1), temperature)) - mean) < 1e-5, `T = ${temperature}`)
  }
  const sampled = () => stream([item(madeRollout({ reward: 1 }))])
  t.equal(await loss(sampled(), 2), await loss(sampled(), 1))
})

t.test('awr weighs each turn', async t => {
  const out = () => join(scratchDir(t), 'o')
  const once = async (method: 'sft' | 'awr', over: Made) => (await weightedRun(method, texts(2, over), { out: out() }))[0]!.loss!
  const plain = await once('sft', {})
  t.equal(await once('awr', { weights: [1, 1] }), plain)
  const [first, second] = [await once('awr', { weights: [1, 0] }), await once('awr', { weights: [0, 1] })]
  t.ok(Math.abs(first + second - plain) < 1e-9, 'the loss is linear in the weights')
  t.equal(await once('sft', { weights: [3, 3] }), plain, 'sft does not look at them')
  await t.rejects(once('awr', {}), { code: 'E_NO_WEIGHTS', message: /has no weights: pipe it through cg-reward/ })
  await t.rejects(once('awr', { weights: [1] }), { code: 'E_TURNS', message: '1 weights for 2 turns: one for each turn' })
})

t.test('a rollout that cannot be used names its line, and with -k is left out', async t => {
  const alien = item(madeRollout({ tokens: { ...madeRollout().tokens!, ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 2048] } }))
  const input = () => stream(item(textRollout(0)), alien)
  await t.rejects(weightedRun('sft', input(), { out: join(scratchDir(t), 'o') }), {
    code: 'E_VOCABULARY',
    message: /token id 2048 \(place 9\), and the model's vocabulary ends at 2047/,
    origin: alien.origin,
  })
  const faults: string[] = []
  const runtime = fakeRuntime({
    fault: error => {
      faults.push(error.code)
      return { kind: 'fault', v: 1, stage: 'train', code: error.code, message: error.message, of: 'r', retry: false }
    },
  })
  const [step] = await weightedRun('sft', input(), { out: join(scratchDir(t), 'o') }, runtime)
  t.same(faults, ['E_VOCABULARY'])
  t.match(step, { rollouts: 1 })
})

t.test('input that ended early trains nothing, unless asked to', async t => {
  const early = () => fakeRuntime({ cleanEnd: () => false })
  await t.rejects(weightedRun('sft', texts(2), { out: join(scratchDir(t), 'o') }, early()), {
    code: 'E_EARLY_END',
    message: /nothing was trained/,
  })
  t.equal((await weightedRun('sft', texts(2), { out: join(scratchDir(t), 'o'), allowPartial: true }, early())).length, 1)
})

t.test('other data on a resume is refused', async t => {
  const publish = join(scratchDir(t), 'run')
  await weightedRun('sft', texts(2), { publish })
  await t.rejects(weightedRun('sft', texts(3), { publish, resume: true }), { code: 'E_DATA', message: /step 0 was made from other data/ })
})

t.test('held-out rollouts give a mean loss, and the best version goes to --out', async t => {
  const dir = scratchDir(t)
  const evalFile = join(dir, 'held-out.ndjson')
  writeFileSync(evalFile, `${JSON.stringify(textRollout(5))}\n`)
  const publish = join(dir, 'run')
  const out = join(dir, 'out')
  // a learning rate at which the third step is worse than the first
  const steps = await weightedRun('sft', texts(4), {
    publish,
    out,
    batchSize: 4,
    epochs: 4,
    lr: 0.1,
    evalEvery: 1,
    evalFile,
    choose: 'best',
  })
  const losses = steps.map(s => s.eval!.value)
  t.match(steps[0]!.eval, { name: 'loss', n: 1 })
  const best = 1 + losses.indexOf(Math.min(...losses))
  t.same(readFileSync(join(out, 'adapter_model.safetensors')), readFileSync(join(publish, `v00000${best}`, 'adapter_model.safetensors')))
  t.not(best, 4, 'the last one is not the best here, or this test would show nothing')
  await t.rejects(weightedRun('sft', texts(1), { out, evalEvery: 1, evalFile: join(dir, 'run', 'steps.ndjson') }), {
    code: 'E_EVAL',
    message: /neither instances nor rollouts/,
  })
})

t.test('an adapter of another shape, and LoRA options that contradict it', async t => {
  const dir = scratchDir(t)
  await weightedRun('sft', texts(1), { out: join(dir, 'rank4') })
  await weightedRun('sft', texts(1), { out: join(dir, 'next'), initAdapter: join(dir, 'rank4') })
  const given = fakeRuntime({ given: name => name === 'loraRank' })
  await t.rejects(weightedRun('sft', texts(1), { out: join(dir, 'o'), initAdapter: join(dir, 'rank4'), loraRank: 8 }, given), {
    name: 'UsageError',
    message: /--lora-rank 8, and --init-adapter has 4/,
  })
  const config = join(dir, 'rank4', 'adapter_config.json')
  writeFileSync(config, readFileSync(config, 'utf8').replace(/"r": ?4/, '"r": 8'))
  await t.rejects(weightedRun('sft', texts(1), { out: join(dir, 'o'), initAdapter: join(dir, 'rank4') }), {
    code: 'E_ADAPTER',
    message: /lora_A/,
  })
})

t.test('the engine is the real one', async t => t.ok(loadEngine().cpu().model))
