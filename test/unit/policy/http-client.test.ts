import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { apiKey, createHttpClient } from '#cg/policy/http-client.js'
import { serve } from './a-server.js'

function client(over: object = {}) {
  const waits: number[] = []
  const notes: string[] = []
  const http = createHttpClient({
    timeoutMs: 5000,
    retries: 2,
    sleep: async ms => {
      waits.push(ms)
    },
    note: message => notes.push(message),
    ...over,
  })
  return { http, waits, notes }
}
const ok = { json: { fine: true } }

t.test('a good reply; the key goes into the header', async t => {
  const { base, asked } = await serve(t, [ok])
  const { http, waits } = client({ key: 'sk-secret' })
  t.same(await http(`${base}/x`, { a: 1 }), { fine: true })
  t.same(waits, [])
  t.match(asked, [{ path: '/v1/x', body: { a: 1 }, headers: { authorization: 'Bearer sk-secret', 'content-type': 'application/json' } }])
})

const after: [what: string, status: number, headers: Record<string, string>, least: number, most: number][] = [
  ['429 with seconds', 429, { 'retry-after': '3' }, 3000, 3000],
  ['429 with milliseconds', 429, { 'retry-after-ms': '120', 'retry-after': '9' }, 120, 120],
  ['503 with a date', 503, { 'retry-after': new Date(Date.now() + 20_000).toUTCString() }, 15_000, 20_000],
  ['429 without a time', 429, {}, 375, 500],
  ['a time that is too long', 429, { 'retry-after': '600' }, 375, 500],
  ['500', 500, {}, 375, 500],
  ['408', 408, {}, 375, 500],
  ['409', 409, {}, 375, 500],
  ['400 that asks for another try', 400, { 'x-should-retry': 'true' }, 375, 500],
]
for (const [what, status, headers, least, most] of after)
  t.test(`${what}: another try`, async t => {
    const { base } = await serve(t, [{ status, headers, json: { error: { message: 'busy' } } }, ok])
    const { http, waits, notes } = client()
    t.same(await http(base, {}), { fine: true })
    t.equal(waits.length, 1)
    t.ok(waits[0]! >= least && waits[0]! <= most, `${waits[0]} ms`)
    t.match(notes[0], /busy; once more in/)
  })

t.test('waits grow, and tries end', async t => {
  const { base, asked } = await serve(t, [{ status: 502, text: '<html><h1>Bad gateway</h1></html>' }])
  const { http, waits } = client({ retries: 6 })
  await t.rejects(http(base, {}), { code: 'E_SERVER', retry: true, message: /status 502: Bad gateway/ })
  t.equal(asked.length, 7)
  for (const [n, ms] of waits.entries()) {
    const full = Math.min(500 * 2 ** n, 8000)
    t.ok(ms <= full && ms >= 0.75 * full, `${ms} of ${full}`)
  }
})

const final: [what: string, status: number, headers: Record<string, string>, error: object, message: RegExp][] = [
  ['400', 400, {}, { message: 'max_tokens is too large' }, /status 400: max_tokens is too large/],
  ['401', 401, {}, { message: 'wrong key sk-secret' }, /status 401: wrong key …: check --key-file/],
  ['404', 404, {}, { message: 'not found' }, /usually ends with \/v1/],
  ['an exhausted quota', 429, {}, { message: 'pay first', code: 'insufficient_quota' }, /pay first/],
  ['500 that asks for no other try', 500, { 'x-should-retry': 'false' }, { message: 'broken' }, /broken/],
]
for (const [what, status, headers, error, message] of final)
  t.test(`${what}: final`, async t => {
    const { base, asked } = await serve(t, [{ status, headers, json: { error } }])
    const { http } = client({ key: 'sk-secret' })
    await t.rejects(http(base, {}), { code: 'E_SERVER', message })
    t.equal(asked.length, 1)
  })

t.test('a server that hangs, closes, or speaks no JSON', async t => {
  const hanging = await serve(t, ['hang', ok])
  t.same(await client({ timeoutMs: 150 }).http(hanging.base, {}), { fine: true })
  await t.rejects(client({ timeoutMs: 50, retries: 0 }).http((await serve(t, ['hang'])).base, {}), {
    message: /no reply within 0\.05 s: is the server running/,
  })
  t.same(await client().http((await serve(t, ['close', ok])).base, {}), { fine: true })
  await t.rejects(client({ retries: 1 }).http((await serve(t, [{ text: 'hello' }])).base, {}), { message: /the reply is not JSON: hello/ })
  const unused = createServer().listen(0)
  const { port } = unused.address() as AddressInfo
  await new Promise(resolve => unused.close(resolve))
  await t.rejects(client({ retries: 0 }).http(`http://127.0.0.1:${port}/v1`, {}), { message: /ECONNREFUSED: is the server running/ })
})

t.test('an abort is no reason for another try', async t => {
  const { base, asked } = await serve(t, ['hang'])
  const stop = new AbortController()
  const reply = client().http(base, {}, stop.signal)
  setTimeout(() => stop.abort(new Error('stopped')), 50)
  await t.rejects(reply, { message: 'stopped' })
  t.equal(asked.length, 1)
})

t.test('a redirect is not followed: it would take the key elsewhere', async t => {
  const elsewhere = await serve(t, [ok])
  const { base } = await serve(t, [{ status: 307, headers: { location: elsewhere.base }, json: {} }])
  await t.rejects(client({ key: 'sk-secret', retries: 0 }).http(base, {}), { code: 'E_SERVER' })
  t.equal(elsewhere.asked.length, 0)
})

t.test('keys', async t => {
  const file = join(t.testdir(), 'key')
  writeFileSync(file, 'sk-file\nmore\n')
  t.equal(apiKey(file), 'sk-file')
  writeFileSync(file, '\n')
  t.throws(() => apiKey(file), { name: 'UsageError', message: /first line is empty/ })
  t.throws(() => apiKey(`${file}.none`), { name: 'UsageError' })
  process.env.OPENAI_API_KEY = 'sk-env'
  t.equal(apiKey(undefined), 'sk-env')
  process.env.OPENAI_API_KEY = ''
  t.equal(apiKey(undefined), undefined)
})
