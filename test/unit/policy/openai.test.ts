import t from 'tap'
import { openChatThread } from '#cg/model/chat-thread.js'
import { createHttpClient } from '#cg/policy/http-client.js'
import { openaiPolicy } from '#cg/policy/openai.js'
import type { Message, TurnRequest } from '#cg/policy/policy.js'
import type { Tree } from '#cg/tools/tree.js'
import { serve } from './a-server.js'

const http = createHttpClient({ timeoutMs: 5000, retries: 0 })
const tools = [{ type: 'function', function: { name: 'grep', description: '', parameters: {} } }]
const chat = openChatThread('fixtures/model', { thinking: false })
const end = chat.stopIds[0]!

const request = (over: Partial<TurnRequest> = {}): TurnRequest => ({
  rollout: 'ab'.repeat(32),
  turn: 0,
  last: false,
  maxCalls: 8,
  sample: 0,
  instance: { instance_id: 'i', repo: 'r', base_commit: 'c', problem_statement: 'p' },
  tree: undefined as unknown as Tree,
  messages: [{ role: 'user', content: 'find it' }],
  maxTokens: 99,
  sampling: { temperature: 0.5, topK: 20, topP: 0.9, minP: 0, repetitionPenalty: 1.1 },
  seed: 5n,
  ...over,
})
const said = (message: object, finish_reason = 'stop') => ({
  json: { choices: [{ message, finish_reason }], usage: { prompt_tokens: 7, completion_tokens: 3 } },
})
const chatPolicy = (base: string, over: object = {}) => openaiPolicy({ base, model: 'm', http, tools: null, thinking: false, ...over })

t.test('chat: what is sent and what comes back', async t => {
  const { base, asked } = await serve(t, [said({ content: 'It is <answer>…</answer>' })])
  const policy = await chatPolicy(base)
  t.same(await policy.submit(request()), { text: 'It is <answer>…</answer>', stop: 'stop', usage: { prompt: 7, generated: 3 } })
  t.same([policy.tokens, policy.scripted, policy.identity.name], [false, false, 'm'])
  t.equal(asked[0]!.path, '/v1/chat/completions')
  t.match(asked[0]!.body, {
    model: 'm',
    messages: [{ role: 'user', content: 'find it' }],
    temperature: 0.5,
    top_p: 0.9,
    top_k: 20,
    min_p: 0,
    repetition_penalty: 1.1,
    max_tokens: 99,
    chat_template_kwargs: { enable_thinking: false },
  })
})

t.test('chat: seeds are of rollout and turn, and the same every time', async t => {
  const { base, asked } = await serve(t, [said({ content: 'x' })])
  const policy = await chatPolicy(base)
  for (const over of [{}, {}, { turn: 1 }, { rollout: 'cd'.repeat(32) }, { seed: 6n }]) await policy.submit(request(over))
  const [a, same, ...others] = asked.map(one => one.body.seed)
  t.equal(a, same)
  t.equal(new Set([a, ...others]).size, 4)
  for (const { body } of asked) t.ok(Number.isInteger(body.seed) && (body.seed as number) >= 0 && (body.seed as number) < 2 ** 31)
})

const conversation: Message[] = [
  { role: 'user', content: 'find it' },
  {
    role: 'assistant',
    content:
      'Let me look.\n<tool_call>\n{"name": "grep", "arguments": {"pattern": "x"}}\n</tool_call>\n<tool_call>\n{"name": "glob"\n</tool_call>',
  },
  { role: 'tool', content: '[no matches]' },
  { role: 'tool', content: '[bad call]' },
]

t.test('chat, brief: results are one user message, as the template would have it', async t => {
  const { base, asked } = await serve(t, [said({ content: 'x' })])
  await (await chatPolicy(base)).submit(request({ messages: conversation }))
  t.same(asked[0]!.body.messages, [
    conversation[0],
    conversation[1],
    { role: 'user', content: '<tool_response>\n[no matches]\n</tool_response>\n<tool_response>\n[bad call]\n</tool_response>' },
  ])
})

t.test('chat, full: the server’s own form of calls, both ways', async t => {
  const { base, asked } = await serve(t, [
    said(
      {
        content: 'Well.',
        tool_calls: [{ function: { name: 'grep', arguments: '{"pattern":"x"}' } }, { function: { name: 'glob', arguments: '{' } }],
      },
      'tool_calls',
    ),
  ])
  const { text, stop } = await (await chatPolicy(base, { tools })).submit(request({ messages: conversation }))
  t.equal(
    text,
    'Well.\n<tool_call>\n{"name": "grep", "arguments": {"pattern": "x"}}\n</tool_call>\n<tool_call>\n{"name": "glob", "arguments": {}\n</tool_call>',
    'arguments that do not parse stay as they are',
  )
  t.equal(stop, 'stop')
  t.same(asked[0]!.body.tools, tools)
  t.match(asked[0]!.body.messages, [
    {},
    {
      role: 'assistant',
      content: 'Let me look.',
      tool_calls: [{ id: 'call_1_0', function: { name: 'grep', arguments: '{"pattern":"x"}' } }, { id: 'call_1_1' }],
    },
    { role: 'tool', tool_call_id: 'call_1_0', content: '[no matches]' },
    { role: 'tool', tool_call_id: 'call_1_1', content: '[bad call]' },
  ])
})

t.test('chat: thoughts, length, filter, nonsense', async t => {
  const { base } = await serve(t, [
    said({ content: 'x', reasoning: 'hm' }),
    said({ content: 'x' }, 'length'),
    said({ content: null }),
    said({ content: 'x' }, 'content_filter'),
    { json: { hello: 1 } },
  ])
  const policy = await chatPolicy(base)
  t.equal((await policy.submit(request())).text, '<think>\nhm\n</think>\n\nx')
  t.equal((await policy.submit(request())).stop, 'length')
  t.equal((await policy.submit(request())).text, '')
  await t.rejects(policy.submit(request()), { code: 'E_SERVER', message: /content filter/ })
  await t.rejects(policy.submit(request()), { code: 'E_SERVER', message: /no choices\[0\]\.message/ })
})

t.test('chat: a server that knows only OpenAI’s fields', async t => {
  const refuse = { status: 400, json: { error: { message: 'Unrecognized request argument supplied: top_k' } } }
  const plain = request({ sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 } })
  const { base, asked } = await serve(t, [({ body }) => ('top_k' in body ? refuse : said({ content: 'x' }))])
  const policy = await chatPolicy(base)
  await policy.submit(plain)
  await policy.submit(plain)
  t.same(
    asked.map(one => 'top_k' in one.body),
    [true, false, false],
    'tried once',
  )
  const other = await chatPolicy(base)
  await t.rejects(other.submit(request()), { message: /leave out --top-k, --min-p and --repetition-penalty/ })
})

t.test('which model', async t => {
  const one = await serve(t, [{ json: { data: [{ id: 'only' }] } }])
  t.equal((await chatPolicy(one.base, { model: undefined })).identity.name, 'only')
  const two = await serve(t, [{ json: { data: [{ id: 'a' }, { id: 'b' }] } }])
  await t.rejects(chatPolicy(two.base, { model: undefined }), { code: 'E_SERVER_MODEL', message: /it has a, b: write openai:.*#NAME/ })
})

const completions = (base: string) => chatPolicy(base, { chat, modelDir: 'fixtures/model' })
const prompt = Int32Array.of(2042, 5, 6)
const sampled = (token_ids: number[] | undefined, over: object = {}) => ({
  json: { choices: [{ token_ids, logprobs: { token_logprobs: token_ids?.map(() => -0.5) }, finish_reason: 'stop', ...over }] },
})

t.test('completions: ids in, ids and log-probs out', async t => {
  const ids = [...chat.tokenizer.encode('hello <tool_call>'), end]
  const { base, asked } = await serve(t, [sampled(ids, { prompt_token_ids: [...prompt] })])
  const policy = await completions(base)
  const { text, ids: back, logprobs, stop } = await policy.submit(request({ ids: prompt }))
  t.equal(text, 'hello <tool_call>')
  t.same([...back!], ids)
  t.same(
    [...logprobs!],
    ids.map(() => -0.5),
  )
  t.equal(stop, 'stop')
  t.equal(policy.tokens, true)
  t.equal(asked[0]!.path, '/v1/completions')
  t.match(asked[0]!.body, {
    prompt: [...prompt],
    return_token_ids: true,
    logprobs: 0,
    stop_token_ids: chat.stopIds,
    top_k: 20,
    max_tokens: 99,
  })
})

t.test('completions: a turn that was cut', async t => {
  const { base } = await serve(t, [sampled([5, 6], { finish_reason: 'length' })])
  t.match(await (await completions(base)).submit(request({ ids: prompt })), { stop: 'length', ids: Int32Array.of(5, 6) })
})

const unusable: [what: string, reply: object, expected: { code: string; message: RegExp }][] = [
  ['no ids', sampled(undefined), { code: 'E_SERVER_IDS', message: /gives no token ids.*leave out --tokenizer/ }],
  ['other prompt ids', sampled([5, end], { prompt_token_ids: [1, 2] }), { code: 'E_SERVER_IDS', message: /changed the prompt's tokens/ }],
  ['no end of turn', sampled([5, 6]), { code: 'E_SERVER', message: /leaves out the end-of-turn token/ }],
  ['ids outside of the vocabulary', sampled([99_999, end]), { code: 'E_SERVER', message: /do not fit the vocabulary/ }],
  ['a log-prob too few', sampled([5, end], { logprobs: { token_logprobs: [-1] } }), { code: 'E_SERVER', message: /2 ids and 1 log-probs/ }],
]
for (const [what, reply, expected] of unusable)
  t.test(`completions: ${what}`, async t => {
    const { base } = await serve(t, [reply])
    await t.rejects((await completions(base)).submit(request({ ids: prompt })), expected)
  })
