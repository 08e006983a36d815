import { readFileSync } from 'node:fs'
import { globby } from 'globby'
import t from 'tap'
import { codes } from '#cg/record/codes.js'

/** What each folder of src/ may import beside itself and record/ (design, section 3); cli may import all, nothing may import cli. */
const below: Record<string, string[]> = {
  record: [],
  store: [],
  repo: ['store'],
  index: ['repo', 'store'],
  tools: ['index', 'repo', 'store'],
  score: [],
  gold: ['score'],
  model: ['score'],
  engine: [],
  reward: ['score'],
  policy: ['tools', 'model', 'engine', 'index', 'store', 'score'],
}
for (const stage of ['rollout', 'train', 'eval', 'mine', 'judge'])
  below[stage] = ['gold', 'score', 'policy', 'tools', 'model', 'engine', 'index', 'repo', 'store']

const sources = (await globby('src/**/*.ts')).sort()
const native = (await globby('native/**/*.{h,cpp,cu,cuh}')).sort()
const read = (file: string) => readFileSync(file, 'utf8')
const imports = (file: string) => [...read(file).matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, name]) => name!)
const matching = (files: string[], pattern: RegExp) => files.filter(file => pattern.test(read(file)))

t.test('imports go one way', async t => {
  const wrong = sources.flatMap(file => {
    const folder = file.split('/')[1]!
    return imports(file)
      .filter(name => {
        const target = /^\.\.\/(\w+)\//.exec(name)?.[1]
        return target !== undefined && target !== 'record' && target !== folder && folder !== 'cli' && !below[folder]?.includes(target)
      })
      .map(name => `${file} imports ${name}`)
  })
  t.ok(sources.length > 50)
  t.same(wrong, [])
})

t.test('reward and score are pure: no files, processes, clocks or chance', async t => {
  const pure = sources.filter(file => /^src\/(reward|score)\//.test(file))
  t.ok(pure.length > 5)
  t.same(
    pure.filter(file => imports(file).some(name => name.startsWith('node:'))),
    [],
  )
  t.same(matching(pure, /\b(Date|Math\.random|process)\b[.(]/), [])
})

t.test('only the runner ends the process, and nothing writes to standard output or the console beside it', async t => {
  t.same(matching(sources, /process\.exit\(/), ['src/cli/runner.ts'])
  t.same(matching(sources, /console\.|process\.stdout\.write/), [])
})

t.test('one file loads the addon', async t => t.same(matching(sources, /cg\.node/), ['src/engine/load.ts']))

t.test('files stay small', async t => {
  const files = [...sources, ...native, ...(await globby('test/**/*.ts'))]
  const limit = (file: string) => (file.startsWith('src/') ? 300 : 400)
  t.same(
    files.filter(file => read(file).split('\n').length > limit(file) + 1),
    [],
  )
})

t.test('every code of a fault or error is in cg-record(5), and no other', async t => {
  const files = [...sources.filter(file => file !== 'src/record/codes.ts'), ...native.filter(file => !file.startsWith('native/test/'))]
  const used = new Set(files.flatMap(file => [...read(file).matchAll(/['"](E_[A-Z_]+)['"]/g)].map(([, code]) => code!)))
  t.same([...used].filter(code => !(code in codes)).sort(), [])
  t.same(
    Object.keys(codes).filter(code => !used.has(code)),
    [],
  )
})

t.test('Node and CUDA stay in their places', async t => {
  t.ok(native.length > 20)
  t.same(
    matching(
      native.filter(file => !file.startsWith('native/node/')),
      /#include\s*[<"](napi|node_api|node|v8|uv)\.h/,
    ),
    [],
  )
  t.same(
    matching(
      native.filter(file => !file.startsWith('native/cuda/')),
      /#include\s*[<"](cuda|cublas|nccl)/,
    ),
    [],
  )
})

t.test('backends do not see each other', async t => {
  const backends = ['reference', 'reference_remote', 'cpu', 'cuda']
  const wrong = native.flatMap(file => {
    const own = file.split('/')[1]!
    if (!backends.includes(own)) return []
    const targets = [...read(file).matchAll(/#include\s*"(?:[^"]*\/)?(\w+)\/[^"/]+"/g)].map(([, target]) => target!)
    // by design, the remote one is the reference behind a queue, and the CPU's is the reference with faster products
    return targets
      .filter(
        target => backends.includes(target) && target !== own && !((own === 'reference_remote' || own === 'cpu') && target === 'reference'),
      )
      .map(target => `${file} includes ${target}`)
  })
  t.same(wrong, [])
})
