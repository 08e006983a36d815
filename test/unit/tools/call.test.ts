import t from 'tap'
import type { Cache, CacheKey } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import type { Observation, Tool, Toolset } from '#cg/tools/toolset.js'
import type { Tree } from '#cg/tools/tree.js'

const tree = { id: 'tree-1' } as Tree

t.test('a result is cached by tree, toolset and arguments', async t => {
  const { cache, keys } = memory()
  let runs = 0
  const runner = createToolRunner({ toolset: toolsetOf(async () => ok(`run ${++runs}`)), cache, cores: 2 })
  t.equal((await runner.call(tree, 'it', { a: 1 })).text, 'run 1')
  t.equal((await runner.call(tree, 'it', { a: 1 })).text, 'run 1')
  t.equal((await runner.call(tree, 'it', { a: 2 })).text, 'run 2')
  t.equal((await runner.call({ id: 'tree-2' } as Tree, 'it', { a: 1 })).text, 'run 3')
  t.equal(keys.length, 3)
  t.match(keys[0], { stage: 'tool', tree: 'tree-1', toolset: 'digest', tool: 'it', arguments: { a: 1 } })
})

t.test('a timeout and an error are never cached', async t => {
  for (const status of ['timeout', 'error'] as const) {
    const { cache, keys } = memory()
    let runs = 0
    const runner = createToolRunner({ toolset: toolsetOf(async () => ({ text: `${++runs}`, status, truncated: false })), cache, cores: 1 })
    await runner.call(tree, 'it', {})
    t.equal((await runner.call(tree, 'it', {})).text, '2')
    t.strictSame(keys, [])
  }
})

t.test('the same call at the same time runs once', async t => {
  let runs = 0
  const tool = async () => {
    await later()
    return ok(`${++runs}`)
  }
  const runner = createToolRunner({ toolset: toolsetOf(tool), cache: memory().cache, cores: 4 })
  const all = await Promise.all(Array.from({ length: 8 }, () => runner.call(tree, 'it', { a: 1 })))
  t.strictSame(
    all.map(({ text }) => text),
    Array(8).fill('1'),
  )
})

t.test('who joins a call that its caller gave up gets an answer', async t => {
  const tool = async (_: unknown, signal?: AbortSignal) => {
    await later()
    signal?.throwIfAborted()
    return ok('done')
  }
  const runner = createToolRunner({ toolset: toolsetOf(tool), cache: memory().cache, cores: 4 })
  const stop = new AbortController()
  const first = runner.call(tree, 'it', {}, stop.signal)
  const second = runner.call(tree, 'it', {})
  stop.abort(new Error('gave up'))
  await t.rejects(first, { message: 'gave up' })
  t.equal((await second).text, 'done')
})

t.test('as many run at once as there are cores', async t => {
  let running = 0
  let most = 0
  const tool = async () => {
    most = Math.max(most, ++running)
    await later()
    running--
    return ok('')
  }
  const runner = createToolRunner({ toolset: toolsetOf(tool), cache: memory().cache, cores: 3 })
  await Promise.all(Array.from({ length: 100 }, (_, a) => runner.call(tree, 'it', { a })))
  t.equal(most, 3)
})

t.test('the digest of a toolset changes with its caps', async t => {
  t.equal(codegrep().digest, codegrep().digest)
  t.not(codegrep({ chars: 4095 }).digest, codegrep().digest)
  t.not(codegrep({ grepGlob: '*.py' }).digest, codegrep().digest)
})

function toolsetOf(run: (args: unknown, signal?: AbortSignal) => Promise<Observation>): Toolset {
  const tool: Tool = {
    name: 'it',
    description: '',
    parameters: {},
    check: () => undefined,
    run: (_, args, __, signal) => run(args, signal),
  }
  return { name: 'test', digest: 'digest', tools: [tool], caps: codegrep().caps }
}

function memory(): { cache: Cache; keys: CacheKey[] } {
  const values = new Map<string, unknown>()
  const keys: CacheKey[] = []
  const cache: Cache = {
    get: key => values.get(JSON.stringify(key)),
    put(key, value) {
      keys.push(key)
      values.set(JSON.stringify(key), value)
    },
    flush: () => {},
    close: () => {},
  }
  return { cache, keys }
}

function ok(text: string): Observation {
  return { text, status: 'ok', truncated: false }
}

function later(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, 3))
}
