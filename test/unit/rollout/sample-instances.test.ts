import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import t from 'tap'
import type { Item } from '#cg/record/item.js'
import { sampleInstances } from '#cg/rollout/sample-instances.js'
import { openCache } from '#cg/store/sqlite-cache.js'
import { createLimit } from '#cg/tools/limit.js'
import { scratch } from '../../pipeline/process.js'
import { treeOf } from '../tools/a-tree.js'
import { answer, chat, saying, settings, task } from './a-policy.js'

const Sqlite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Database
const { tree, bare, commits } = await treeOf(t, { 'lib/parse.py': 'pass\n' })

t.test('what cannot be computed again is committed before it comes out', async t => {
  const file = join(scratch(t).dir, 'cache.db')
  const cache = openCache({ file })
  const worktree = { commit: commits[0]!, tree: tree.id, bare }
  async function* input(): AsyncGenerator<Item> {
    for (let line = 1; line <= 3; line++) {
      const record = { kind: 'instance' as const, ...task, instance_id: `i${line}`, problem_statement: `${line}`, worktree }
      yield { kind: 'instance', record, origin: { file: '-', line } } as Item
    }
  }
  const sampler = {
    policy: saying([answer('lib/parse.py')]),
    chat,
    settings: settings(),
    samples: 1,
    limit: createLimit(1),
    cache,
    table: 'results' as const,
    openTree: async () => tree,
  }
  const count = { in: 0, out: 0, cached: 0, faults: 0 }
  const context = { cache, count, signal: new AbortController().signal, fault: (error: Error) => t.fail(error.message) }
  const committed = () => {
    const db = new Sqlite(file)
    const { rows } = db.prepare(`SELECT count(*) AS rows FROM results WHERE stage = 'rollout'`).get() as { rows: number }
    db.close()
    return rows
  }
  let came = 0
  for await (const _ of sampleInstances(input(), sampler as never, { jobs: 1, precious: true, context: context as never })) {
    came++
    t.ok(committed() >= came, `${committed()} committed, ${came} came out`)
  }
  t.equal(came, 3)
  cache.close()
})
