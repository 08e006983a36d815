import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { nativeName, type PolicySpec, parsePolicy } from '#cg/policy/parse-policy.js'

const dir = t.testdir()
for (const name of ['models/tiny', 'tiny@home', 'adapter']) mkdirSync(join(dir, name), { recursive: true })
process.chdir(dir)
process.env.CG_MODELS = join(dir, 'models')

const good: [text: string, spec: PolicySpec][] = [
  ['lexical', { kind: 'lexical' }],
  ['bm25', { kind: 'bm25', k: 2 }],
  ['bm25:5', { kind: 'bm25', k: 5 }],
  ['replay:a:b.ndjson', { kind: 'replay', file: 'a:b.ndjson' }],
  ['openai:http://localhost:8000/v1', { kind: 'openai', base: 'http://localhost:8000/v1' }],
  ['openai:https://host/v1#org/model', { kind: 'openai', base: 'https://host/v1', model: 'org/model' }],
  ['native:models/tiny', { kind: 'native', model: 'models/tiny', adapter: null }],
  ['native:tiny', { kind: 'native', model: join(dir, 'models/tiny'), adapter: null }],
  ['native:tiny@adapter', { kind: 'native', model: join(dir, 'models/tiny'), adapter: 'adapter' }],
]
for (const [text, spec] of good) t.test(text, async t => t.same(parsePolicy(text), spec))

const wrong: [text: string, message: RegExp][] = [
  ['lexicl', /not a policy; did you mean lexical: write native:MODEL/],
  ['bm52', /did you mean bm25/],
  ['Native:tiny', /did you mean native/],
  ['http://localhost:8000/v1', /did you mean openai:http:\/\/localhost:8000\/v1/],
  ['old.ndjson', /did you mean replay:old\.ndjson/],
  ['models/tiny', /did you mean native:models\/tiny/],
  ['gpt', /not a policy: write/],
  ['native:', /which model/],
  ['native:nothing', /model nothing: no such directory, and none in \$CG_MODELS/],
  ['native:tiny@nothing', /adapter nothing: no such directory/],
  ['openai:localhost', /write openai:URL/],
  ['bm25:0', /bm25:K/],
  ['bm25:x', /bm25:K/],
  ['lexical:x', /takes nothing/],
  ['replay:', /which rollouts/],
]
for (const [text, message] of wrong) t.test(text, async t => t.throws(() => parsePolicy(text), { name: 'UsageError', message }))

t.test('names', async t => {
  t.equal(nativeName({ model: '/a/b/tiny/', adapter: null }), 'tiny')
  t.equal(nativeName({ model: 'tiny', adapter: 'runs/x/v000003' }), 'tiny@v000003')
})
