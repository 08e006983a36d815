import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { canonical } from '#cg/record/canonical.js'
import { groups, mapGroups } from '#cg/record/groups.js'
import { type Item, isItem, type Known, type Output } from '#cg/record/item.js'
import { locateJsonError } from '#cg/record/locate.js'
import { readRecords } from '#cg/record/read.js'
import type { Rollout } from '#cg/record/schema.js'
import { mapRecords } from '#cg/record/stage.js'
import { lineWriter } from '#cg/record/write.js'
import { json, type Random, random } from './generate.js'

const dir = mkdtempSync(join(tmpdir(), 'cg-property-'))
const write = lineWriter()
const context = {
  signal: new AbortController().signal,
  fault: (error: Error) => {
    throw error
  },
}
let files = 0

async function readAll(bytes: string | Buffer): Promise<Item[]> {
  const path = join(dir, `${++files}`)
  writeFileSync(path, bytes)
  const items: Item[] = []
  for await (const item of readRecords(path, ['instance', 'barrier'])) items.push(item)
  return items
}

async function* from(items: readonly Item[]) {
  yield* items
}

async function text(outputs: AsyncIterable<Output>): Promise<string> {
  let all = ''
  for await (const output of outputs) {
    if (output.kind === 'foreign') all += `${Buffer.from(output.bytes as Uint8Array)}\n`
    else all += write(isItem(output) ? output.record : output)
  }
  return all
}

const instance = (r: Random, n: number) => ({
  ...(json(r, 0) === null ? {} : { extra: json(r, 3) }),
  instance_id: `i${n}`,
  repo: 'o/r',
  base_commit: 'c',
  problem_statement: r.text(30),
})
const barrier = (step: number) => ({ kind: 'barrier', v: 1, step, version: 0, groups: 1, digest: '0'.repeat(64) })

function stream(r: Random, first: number): string {
  const lines: string[] = []
  for (let n = 0; n < r.below(30); n++)
    lines.push(JSON.stringify(r.pick([instance(r, first + n), instance(r, first + n), { kind: 'weather', data: json(r, 2) }, barrier(n)])))
  return lines.map(line => `${line}\n`).join('')
}

for (let seed = 1; seed <= 12; seed++) {
  t.test(`seed ${seed}: what is read is what is written`, async t => {
    const lines = stream(random(seed), 0)
    const once = await text(from(await readAll(lines)))
    t.equal(await text(from(await readAll(once))), once, 'twice is once')
    const before = lines
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line))
    const after = once
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line))
    t.equal(after.length, before.length)
    for (let n = 0; n < before.length; n++)
      t.equal(canonical(after[n]), canonical('instance_id' in before[n] ? { kind: 'instance', v: 1, ...before[n] } : before[n]))
  })

  t.test(`seed ${seed}: lines, an array and gzip hold the same records`, async t => {
    const r = random(seed)
    const rows = Array.from({ length: r.below(20) }, (_, n) => instance(r, n))
    const lines = await text(from(await readAll(rows.map(row => `${JSON.stringify(row)}\n`).join(''))))
    t.equal(await text(from(await readAll(JSON.stringify(rows, null, r.below(3))))), lines)
    t.equal(await text(from(await readAll(gzipSync(rows.map(row => JSON.stringify(row)).join('\r\n'))))), lines)
  })

  t.test(`seed ${seed}: concatenated inputs give concatenated outputs, at any number of jobs`, async t => {
    const a = stream(random(seed), 0)
    const b = stream(random(seed + 1000), 100)
    const stage = async (input: string, jobs: number) => {
      const r = random(seed)
      return text(
        mapRecords(from(await readAll(input)), 'instance', { jobs, context }, async record => {
          if (r.below(3) === 0) await sleep(r.below(3))
          const length = record.instance_id.length % 3
          return length === 0 ? [] : Array.from({ length }, (_, copy) => ({ ...record, copy }))
        }),
      )
    }
    const whole = await stage(a + b, 1)
    t.equal(whole, (await stage(a, 1)) + (await stage(b, 1)))
    for (const jobs of [2, 3, 8, 50]) t.equal(await stage(a + b, jobs), whole, `-j ${jobs}`)
  })

  t.test(`seed ${seed}: groups come out complete, adjacent and in order; nothing is lost or moved`, async t => {
    const r = random(seed)
    const items: Item[] = []
    const origin = { file: '-', line: 1 }
    for (let g = 0; g < 8; g++) {
      const size = 1 + r.below(4)
      const present = r.below(4) === 0 ? r.below(size) : size
      for (let sample = 0; sample < present; sample++) {
        const record = { kind: 'rollout', group: { id: `g${g}`, size, index: g }, sample } as unknown as Rollout
        items.push({ kind: 'rollout', record, origin })
        if (r.below(3) === 0) items.push({ kind: 'foreign', bytes: Buffer.from(`"${g}.${sample}"`), origin })
      }
      if (r.below(3) === 0) items.push({ kind: 'barrier', record: barrier(g) as never, origin })
    }
    const members: string[] = []
    for await (const found of groups(from(items))) {
      if (found.kind !== 'group') continue
      const { rollouts, complete } = found as { rollouts: Known<'rollout'>[]; complete: boolean }
      t.equal(complete, rollouts.length === rollouts[0]!.record.group.size)
      t.equal(new Set(rollouts.map(({ record }) => record.group.id)).size, 1)
      members.push(...rollouts.map(({ record }) => `${record.group.id}/${record.sample}`))
    }
    t.same(
      members,
      items.flatMap(item => (item.kind === 'rollout' ? [`${item.record.group.id}/${item.record.sample}`] : [])),
    )
    t.equal(
      await text(
        mapGroups(
          from(items),
          () => {},
          ({ rollouts }) => rollouts.map(({ record }) => record),
        ),
      ),
      await text(from(items)),
    )
  })

  t.test(`seed ${seed}: the place of an error is one where the text stops being JSON`, async t => {
    const r = random(seed)
    let broken = 0
    for (let n = 0; n < 300; n++) {
      const good = JSON.stringify(json(r, 4))
      if (locateJsonError(good) !== undefined) t.fail('a good text is called broken', { good })
      const at = r.below(good.length + 1)
      const bad = r.pick([
        good.slice(0, at),
        good.slice(0, at) + r.pick(['x', ',', '"', '}', '\\', '1', '\u0001']) + good.slice(at),
        good.slice(0, at) + good.slice(at + 1),
      ])
      let parses = true
      try {
        JSON.parse(bad)
      } catch {
        parses = false
      }
      const found = locateJsonError(bad)
      if ((found === undefined) !== parses) t.fail('not what JSON.parse says', { bad, found })
      if (found) broken++
      if (found && found.at > bad.length) t.fail('the place is outside', { bad, found })
    }
    t.ok(broken > 50, `${broken} broken texts`)
  })
}
