import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { storm } from './cache-storm.js'
import { echo, records, rows, run, scratch } from './process.js'

const memo = (file: string) => ['--memo', '--no-run', '--cache', file]

t.test('processes of several pipes at once, one killed, results pruned meanwhile', async t => {
  t.same(await storm(scratch(t).dir, 0), [])
})

t.test('a damaged cache is said, also with -q, and costs nothing but time', async t => {
  const { dir } = scratch(t)
  const file = join(dir, 'cache.db')
  const cold = await run(echo, memo(file), { input: rows(3) })
  writeFileSync(file, Buffer.alloc(20_000, 1))
  const damaged = await run(echo, ['-q', ...memo(file)], { input: rows(3) })
  t.match(damaged, { status: 0, stdout: cold.stdout })
  t.match(
    damaged.stderr,
    /^cg-echo: .*cache\.db: the cache is damaged \(.+\): set aside as .*cache\.db\.damaged-\d{8}T\d{6}, a new one begins\n$/,
  )
  t.equal(readdirSync(dir).filter(name => /damaged-[^-]+$/.test(name)).length, 1)
  t.match(await run(echo, memo(file), { input: rows(3) }), { status: 0, stdout: cold.stdout, stderr: /3 cached/ })
})

t.test('a warm rerun gives the bytes of the cold one; fields that are not its own stay live', async t => {
  const file = join(scratch(t).dir, 'cache.db')
  const labelled = (label: string) => rows(3).replaceAll('}', `,"label":"${label}"}`)
  const cold = await run(echo, memo(file), { input: labelled('a') })
  const warm = await run(echo, memo(file), { input: labelled('a') })
  t.equal(warm.stdout, cold.stdout)
  t.match(warm.stderr, /3 cached/)
  const other = await run(echo, memo(file), { input: labelled('b') })
  t.match(other.stderr, /3 cached/)
  t.same(
    records(other.stdout).map(({ label, echo }) => [label, echo]),
    [0, 1, 2].map(() => ['b', 'hello']),
  )
})
