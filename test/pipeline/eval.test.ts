import { join } from 'node:path'
import t from 'tap'
import command from '#cg/cli/eval.js'
import { type Example, rollout, target } from '../unit/score/example-rollout.js'
import { inProcess } from './in-process.js'
import { records, run, scratch } from './process.js'

const lines = (...examples: Example[]) => examples.map(example => `${JSON.stringify(rollout(example))}\n`).join('')
const evaluate = (what: string, input: string, ...args: string[]) => inProcess(command, [what, '--no-cache', ...args], input)

const four: Example[] = [
  { instance: 'i1', more: { issue_kind: 'words' } },
  { instance: 'i2', files: ['b.py'], more: { issue_kind: 'error' } },
  { instance: 'i3', stop: 'turns', more: { issue_kind: 'error' } },
  { instance: 'i4', stop: 'fault', calls: [], more: { issue_kind: 'words' } },
]

t.test('score: one a rollout', async t => {
  const { stdout, stderr, status } = await run('bin/cg-eval', ['score', '--no-run', '--no-cache', '--name=mine'], { input: lines(...four) })
  t.equal(status, 0)
  t.match(records(stdout), [
    { kind: 'score', name: 'mine', instance_id: 'i1', f05: 1, issue_kind: 'words', answered: true, fault: false },
    { f05: 0, answered: true },
    { f05: 0, answered: false, fault: false },
    { f05: 0, answered: false, fault: true },
  ])
  t.match(stderr, /4 in, 4 out/)
})

t.test('a rollout without target is not scored, and is counted', async t => {
  const input = lines(four[0]!, { instance: 'i5', target: null })
  const scored = await evaluate('score', input)
  t.equal(scored.records.length, 1)
  t.match(scored.said, '1 rollouts have no target and are not scored: run their instances through cg-mine gold first')
  const table = await evaluate('table', input)
  t.match(table.records, [{ rows: [{ n: 1 }] }])
  t.match(table.said, '1 rollouts have no target and are in no row')
})

t.test('table: rollouts and their scores give the same', async t => {
  const fromRollouts = await evaluate('table', lines(...four))
  const fromScores = await evaluate('table', (await evaluate('score', lines(...four))).lines.join('\n'))
  t.same(fromRollouts.lines, fromScores.lines)
  t.match(fromRollouts.records, [
    {
      kind: 'table',
      title: 'retrieval',
      gold_rules: 'codegrep/1',
      rows: [{ name: 'lexical', n: 4, scored: 3, unanswered: 1, f05_mean: 0.25, share_08: 0.25 }],
    },
  ])
  t.match(fromRollouts.said, '1 rollouts failed and count as 0')
  t.match(fromRollouts.said, '1 rollouts gave no valid answer and count as the empty prediction')
})

t.test('table: broken down, as text', async t => {
  const output = await evaluate('table', lines(...four), '--by=issue_kind', '--format=text', '--title=dev')
  const [title, , head, ...rows] = output.lines
  t.equal(title, 'dev, gold codegrep/1, by issue_kind')
  t.match(head, /scored +F0\.5 +median +P +R +F≥0\.8 +turns +calls\/turn +not run +tokens +seconds/)
  t.match(rows, [/^lexical +3\/4 +0\.250/, /^ {2}error +2\/2 +0\.000/, /^ {2}words +1\/2 +0\.500/])
})

t.test('text is for people: no records around it', async t => {
  const { stdout, stderr, status } = await run('bin/cg-eval', ['table', '--no-cache', '--format=text'], { input: lines(...four) })
  t.notMatch(stdout, /\{/)
  t.match(stderr, /4 in, 1 out/)
  t.equal(status, 0)
  const piped = await run('bin/cg-eval', ['table', '--no-cache'], { input: lines(...four) })
  t.same(
    records(piped.stdout).map(record => record.kind),
    ['run', 'table', 'end'],
  )
})

t.test('table: several named files, without standard input', async t => {
  const { file } = scratch(t)
  const base = file('base.ndjson', lines({ instance: 'i1', files: [] }, { instance: 'i2' }))
  const better = file('better.ndjson', lines({ instance: 'i1' }, { instance: 'i2' }))
  const { stdout, stderr, status } = await run('bin/cg-eval', [
    'table',
    '--no-run',
    '--no-cache',
    `base=${base}`,
    better,
    `other=${better}`,
  ])
  t.equal(status, 0)
  t.match(records(stdout), [
    {
      rows: [
        { name: 'base', f05_mean: 0.5 },
        { name: 'lexical', f05_mean: 1 },
        { name: 'other', f05_mean: 1 },
      ],
    },
  ])
  t.match(stderr, /6 in, 1 out/)
})

t.test('table: rows over different instances are said', async t => {
  const { file } = scratch(t)
  const one = file('one.ndjson', lines({ instance: 'i1' }))
  const two = file('two.ndjson', lines({ instance: 'i1' }, { instance: 'i2' }))
  const { said } = await evaluate('table', '', `a=${two}`, `b=${one}`)
  t.match(said, 'b (1) and a (2) cover different instances: their rows do not compare')
})

t.test('table: what is wrong with the input', async t => {
  const { file } = scratch(t)
  const missing = await run('bin/cg-eval', ['table', '--no-run', '--no-cache', 'a=/no/such.ndjson'])
  t.equal(missing.status, 1)
  t.match(missing.stderr, 'cg-eval table: /no/such.ndjson: no such file: check the name')

  const other = { ...target('a.py'), gold_rules: 'a2agent/1' }
  const mixed = await evaluate('table', lines({ instance: 'i1' }, { instance: 'i2', target: other }))
  t.match(mixed, { lines: [], error: { code: 'E_GOLD_RULES' } })
  t.match(mixed.said, 'the scores are made with different gold rules, a2agent/1 and codegrep/1')

  const twice = await evaluate('table', lines({ instance: 'i1' }, { instance: 'i1' }))
  t.match(twice.records, [{ rows: [{ n: 1 }] }])
  t.match(twice.said, '1 rollouts came twice under one name and count once')

  const broken = file('broken.ndjson', `${lines({ instance: 'i1' })}{"kind":\n`)
  t.match((await evaluate('table', '', `a=${broken}`)).said, `${broken}:2:`)

  const none = await run('bin/cg-eval', ['table', '--no-run', '--no-cache'], { input: lines({ instance: 'i1', target: null }) })
  t.equal(none.stdout, '')
  t.equal(none.status, 4)
})

t.test('table: a fault of an earlier stage is in no row, and stays in the stream', async t => {
  const fault = { kind: 'fault', v: 1, stage: 'rollout', code: 'E_X', message: 'm', of: 'i9', retry: false }
  const { records, said } = await evaluate('table', `${lines(four[0]!)}${JSON.stringify(fault)}\n{"kind":"note"}\n`)
  t.match(
    records.map(record => record.kind),
    ['fault', 'note', 'table'],
  )
  t.match(said, '1 faults of earlier stages are in no row')
})

t.test('compare: difference and interval', async t => {
  const { file } = scratch(t)
  const instances = Array.from({ length: 12 }, (_, n) => `i${n}`)
  const old = file('old.ndjson', lines(...instances.map((instance, n) => ({ instance, files: n < 3 ? ['a.py'] : ['b.py'] }))))
  const better = file('new.ndjson', lines(...instances.map((instance, n) => ({ instance, files: n < 9 ? ['a.py'] : ['b.py'] }))))
  const compare = (...args: string[]) => evaluate('compare', '', ...args)
  const first = await compare(`old=${old}`, `new=${better}`, '--seed=3')
  const [table] = first.records as [{ difference: { low: number; high: number } }]
  t.match(table, {
    rows: [
      { name: 'old', f05_mean: 0.25 },
      { name: 'new', f05_mean: 0.75 },
    ],
    difference: {
      from: 'old',
      to: 'new',
      instances: 12,
      f05: 0.5,
      level: 0.95,
      resamples: 10000,
      seed: '3',
      better: 6,
      equal: 6,
      worse: 0,
    },
  })
  t.ok(table.difference.low > 0.1 && table.difference.low < 0.5 && table.difference.high > 0.5 && table.difference.high < 0.9)
  t.same((await compare(`old=${old}`, `new=${better}`, '--seed=3')).lines, first.lines)

  const text = await run('bin/cg-eval', ['compare', '--no-cache', `old=${old}`, `new=${better}`, '--format=text'])
  t.match(text.stdout, /new − old: F0\.5 \+0\.500, 95 % interval \+0\.\d{3} … \+0\.\d{3} \(6 better, 6 equal, 0 worse of 12 instances\)/)
  t.equal(text.status, 0)

  const message = async (...args: string[]) => (await compare(...args)).said
  t.match(await message(old, better), 'both policies are called lexical: name them, as in old=FILE new=FILE')
  const elsewhere = file('elsewhere.ndjson', lines({ instance: 'z' }))
  t.match(await message(`a=${old}`, `b=${elsewhere}`), 'no instance is in both files: compare runs over the same instances')
  const mixed = file('mixed.ndjson', lines({ instance: 'i1', policy: 'p' }, { instance: 'i2', policy: 'q' }))
  t.match(await message(mixed, old), `${mixed} has rollouts of p and q: give one file a policy, or a name for all, NAME=${mixed}`)
  t.match(await message(`a=${file('none.ndjson', lines({ target: null }))}`, old), 'none.ndjson has no rollouts with a target')
  await t.rejects(message(old), /B is missing/)
})

t.test('figures come from the cache', async t => {
  const { dir } = scratch(t)
  const cached = () => inProcess(command, ['score', '--cache', join(dir, 'cache.db')], lines(...four))
  const miss = await cached()
  const hit = await cached()
  t.same(hit.lines, miss.lines)
  t.equal(hit.cached, 4)
})
