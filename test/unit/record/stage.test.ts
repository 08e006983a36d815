import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { RecordFault } from '#cg/record/fault.js'
import type { Item, Known, Output } from '#cg/record/item.js'
import { isItem, textLine } from '#cg/record/item.js'
import type { Barrier, Fault, Instance } from '#cg/record/schema.js'
import { mapRecords, type StageContext } from '#cg/record/stage.js'

const origin = { file: '-', line: 1 }
const instance = (n: number): Known<'instance'> => ({
  kind: 'instance',
  origin: { file: '-', line: n },
  record: { instance_id: `i${n}`, repo: 'o/r', base_commit: 'c', problem_statement: '' },
})
const barrier: Barrier = { kind: 'barrier', v: 1, step: 0, version: 0, groups: 1, digest: '0'.repeat(64) }
const keepGoing = (error: RecordFault, of: Known): Fault => ({
  kind: 'fault',
  v: 1,
  stage: 'test',
  code: error.code,
  message: error.message,
  of: (of.record as Instance).instance_id,
  retry: error.retry,
})

function context(overrides: Partial<StageContext> = {}): StageContext {
  return {
    signal: new AbortController().signal,
    fault: error => {
      throw error
    },
    ...overrides,
  }
}

async function* from(items: Item[]): AsyncGenerator<Item> {
  for (const item of items) yield item
}

function label(output: Output): string {
  if (!isItem(output))
    return 'instance_id' in output ? String(output.instance_id) : output.kind === 'fault' ? `fault:${output.code}` : String(output.kind)
  return output.kind === 'foreign' ? Buffer.from(output.bytes).toString() : output.kind
}

async function labels(outputs: AsyncIterable<Output>) {
  const all: string[] = []
  for await (const output of outputs) all.push(label(output))
  return all
}

t.test('the order is that of the input at any number of jobs, with foreign lines and barriers in place', async t => {
  const items: Item[] = []
  for (let n = 0; n < 40; n++) {
    items.push(instance(n))
    if (n % 7 === 3) items.push(textLine(`foreign${n}`))
    if (n % 10 === 9) items.push({ kind: 'barrier', record: barrier, origin })
  }
  const results = await Promise.all(
    [1, 2, 5, 64].map(jobs =>
      labels(
        mapRecords(from(items), 'instance', { jobs, context: context() }, async record => {
          await sleep((Number(record.instance_id.slice(1)) * 7) % 11)
          return record
        }),
      ),
    ),
  )
  t.equal(results[0]!.length, items.length)
  t.same(results[0]!.slice(0, 6), ['i0', 'i1', 'i2', 'i3', 'foreign3', 'i4'])
  for (const result of results) t.same(result, results[0])
})

t.test('no more than `jobs` run at once, and they do run at once', async t => {
  let running = 0
  let most = 0
  const items = Array.from({ length: 20 }, (_, n) => instance(n))
  await labels(
    mapRecords(from(items), 'instance', { jobs: 3, context: context() }, async record => {
      most = Math.max(most, ++running)
      await sleep(2)
      running--
      return record
    }),
  )
  t.equal(most, 3)
})

t.test('a result comes out while the input is still waiting for its next line', async t => {
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  async function* slow(): AsyncGenerator<Item> {
    yield instance(1)
    await gate
    yield instance(2)
  }
  const outputs = mapRecords(slow(), 'instance', { jobs: 2, context: context() }, async record => record)
  t.equal(label((await outputs.next()).value as Output), 'i1')
  release()
  t.equal(label((await outputs.next()).value as Output), 'i2')
  t.ok((await outputs.next()).done)
})

t.test('one slow record does not let the stage read the whole input', async t => {
  let read = 0
  async function* endless(): AsyncGenerator<Item> {
    for (;;) {
      read++
      yield instance(read)
    }
  }
  const stop = new AbortController()
  const outputs = mapRecords(endless(), 'instance', { jobs: 2, context: context({ signal: stop.signal }) }, async record => {
    if (record.instance_id === 'i1') await sleep(50)
    return record
  })
  await outputs.next()
  t.ok(read <= 4 * 2 + 17, `${read} read`)
  stop.abort()
  await outputs.return(undefined)
})

t.test('several records from one: an array, or one after the other', async t => {
  const twice = await labels(
    mapRecords(from([instance(1), instance(2)]), 'instance', { jobs: 2, context: context() }, record => [record, record]),
  )
  t.same(twice, ['i1', 'i1', 'i2', 'i2'])
  const streamed = await labels(
    mapRecords(from([instance(1), instance(2)]), 'instance', { jobs: 2, context: context() }, record =>
      (async function* () {
        yield record
        await sleep(record.instance_id === 'i1' ? 10 : 1)
        yield record
      })(),
    ),
  )
  t.same(streamed, ['i1', 'i1', 'i2', 'i2'])
})

t.test('a failed record becomes a fault in its place, or ends the stage after what preceded it', async t => {
  const items = [1, 2, 3].map(instance)
  const work = async (record: Instance) => {
    await sleep(record.instance_id === 'i1' ? 10 : 1)
    if (record.instance_id === 'i2') throw new RecordFault('E_COMMIT_MISSING', 'no such commit')
    return record
  }
  t.same(await labels(mapRecords(from(items), 'instance', { jobs: 3, context: context({ fault: keepGoing }) }, work)), [
    'i1',
    'fault:E_COMMIT_MISSING',
    'i3',
  ])

  const outputs = mapRecords(from(items), 'instance', { jobs: 3, context: context() }, work)
  t.equal(label((await outputs.next()).value as Output), 'i1')
  const error = await outputs.next().then(
    () => undefined,
    (error: RecordFault) => error,
  )
  t.match(error, { code: 'E_COMMIT_MISSING', origin: { file: '-', line: 2 } })
})

t.test('any other error ends the stage even when faults are kept', async t => {
  const outputs = labels(
    mapRecords(from([instance(1)]), 'instance', { jobs: 1, context: context({ fault: keepGoing }) }, () => {
      throw new TypeError('a bug')
    }),
  )
  await t.rejects(outputs, { message: 'a bug' })
})

t.test('an error of the input comes after the records before it', async t => {
  async function* broken(): AsyncGenerator<Item> {
    yield instance(1)
    throw new RecordFault('E_PARSE', 'not JSON')
  }
  const outputs = mapRecords(broken(), 'instance', { jobs: 4, context: context({ fault: keepGoing }) }, async record => {
    await sleep(5)
    return record
  })
  t.equal(label((await outputs.next()).value as Output), 'i1')
  await t.rejects(outputs.next(), { code: 'E_PARSE' })
})

t.test('a record that takes too long is a fault, and its work is told', async t => {
  let told = false
  const outputs = await labels(
    mapRecords(
      from([instance(1), instance(2)]),
      'instance',
      { jobs: 1, context: context({ fault: keepGoing, timeout: 0.02 }) },
      async (record, _, signal) => {
        if (record.instance_id === 'i1') {
          signal.addEventListener('abort', () => {
            told = true
          })
          await sleep(200, undefined, { ref: false })
        }
        return record
      },
    ),
  )
  t.same(outputs, ['fault:E_TIMEOUT', 'i2'])
  t.ok(told)
})

t.test('after an abort what is in flight finishes and nothing new begins', async t => {
  const stop = new AbortController()
  const started: string[] = []
  const items = Array.from({ length: 20 }, (_, n) => instance(n))
  const done = await labels(
    mapRecords(from(items), 'instance', { jobs: 3, context: context({ signal: stop.signal }) }, async record => {
      started.push(record.instance_id)
      if (started.length === 5) stop.abort()
      await sleep(3)
      return record
    }),
  )
  t.same(done, started)
  t.ok(done.length >= 5 && done.length < 9, `${done.length} done`)
})
