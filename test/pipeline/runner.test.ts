import { execFileSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { echo, echoStatuses, records, rows, run, scratch, shell, start } from './process.js'

const kinds = (stdout: string) => records(stdout).map(({ kind }) => kind)

t.test('a run, what was done, an end; a summary on standard error', async t => {
  const { stdout, stderr, status } = await run(echo, [], { input: rows(2) })
  t.equal(status, 0)
  const [begin, first, second, end] = records(stdout)
  t.match(begin, { kind: 'run', v: 1, id: /^[0-9a-f]{64}$/, stage: 'echo', command: 'cg-echo', version: /^\d+\.\d+\.\d+$/, seed: '0' })
  t.same(begin!.options, { word: 'hello', size: 1, fail: [], memo: false, style: 'plain' }, 'deciding options, no places')
  t.match(first, { kind: 'instance', v: 1, instance_id: 'i0', echo: 'hello' })
  t.match(second, { instance_id: 'i1' })
  t.match(end, { kind: 'end', v: 1, run: begin!.id, stage: 'echo', in: 2, out: 2, faults: 0, ok: true, digest: /^[0-9a-f]{64}$/ })
  t.match(stderr, /^cg-echo: 2 in, 2 out, 0 cached, 0 faults, \d+\.\d s\n$/)
})

t.test('the id of a run depends on deciding options and the seed alone', async t => {
  const id = async (...args: string[]) => records((await run(echo, args, { input: rows(1) })).stdout)[0]!.id
  const plain = await id()
  t.equal(plain, await id('--scratch', '/tmp', '-j', '3', '-q', '--wait', '1'))
  for (const args of [
    ['--word', 'x'],
    ['--seed', '1'],
    ['--style', 'loud'],
  ])
    t.not(plain, await id(...args))
})

t.test('upstream pairs pass in place, inside the own one', async t => {
  const { stdout, status } = await shell(`${'$ECHO -q'} --word a < <(printf '%s' '${rows(2)}') | $ECHO -q --word b | $ECHO -q --no-run`)
  t.equal(status, 0)
  t.same(kinds(stdout), ['run', 'run', 'instance', 'instance', 'end', 'end'])
  const [outer, inner, , , innerEnd, outerEnd] = records(stdout)
  t.equal(innerEnd!.run, inner!.id)
  t.equal(outerEnd!.run, outer!.id)
  t.match(inner, { options: { word: 'a' } })
})

t.test('--no-run', async t => t.same(kinds((await run(echo, ['--no-run'], { input: rows(2) })).stdout), ['instance', 'instance']))
t.test('-q', async t => t.equal((await run(echo, ['-q'], { input: rows(2) })).stderr, ''))
t.test('-v', async t => t.match((await run(echo, ['-v'], { input: rows(1) })).stderr, /^cg-echo: clean end: true$/m))

t.test('empty input is fine', async t => {
  const { stdout, status } = await run(echo, ['--no-run'])
  t.equal(stdout, '')
  t.equal(status, 0)
})

t.test('lines of other kinds pass as the bytes they were, in place; integers keep their digits', async t => {
  const foreign = '{ "kind" : "weather", "n": 12345678901234567890 }'
  const input = `${rows(1)}${foreign}\n${rows(1, 1).replace('}', ',"pr":9007199254740993}')}`
  const { stdout } = await run(echo, ['--no-run'], { input })
  t.equal(stdout.split('\n')[1], foreign)
  t.match(stdout.split('\n')[2], /"pr":9007199254740993,/)
})

t.test('files, patterns and standard input', async t => {
  const { dir, file } = scratch(t)
  file('b.ndjson', rows(1, 2))
  file('a.ndjson', rows(1, 1))
  const ids = async (args: string[], input = '') =>
    records((await run(echo, ['--no-run', ...args], { cwd: dir, input })).stdout).map(({ instance_id }) => instance_id)
  t.same(await ids(['*.ndjson']), ['i1', 'i2'])
  t.same(await ids(['b.ndjson', '-', 'a.ndjson'], rows(1)), ['i2', 'i0', 'i1'])
  const { stderr, status } = await run(echo, ['*.json'], { cwd: dir })
  t.equal(stderr, 'cg-echo: *.json: no file matches: check the pattern\n')
  t.equal(status, 1)
})

t.test('an early end of upstream is said, and the own end is not ok', async t => {
  const { stdout } = await run(echo, ['-q'], { input: rows(3) })
  const lines = stdout.trimEnd().split('\n')
  for (const [name, input] of [
    ['no end', lines.slice(0, -1).join('\n')],
    ['an end that is not ok', [...lines.slice(0, -1), lines.at(-1)!.replace('"ok":true', '"ok":false')].join('\n')],
    ['a cut last line', `${lines.slice(0, 2).join('\n')}\n${lines[2]!.slice(0, 30)}`],
  ] as const) {
    const result = await run(echo, ['-q'], { input })
    t.equal(result.status, 0, name)
    t.equal(result.stderr, 'cg-echo: upstream cg-echo ended early\n', name)
    t.match(records(result.stdout).at(-1), { kind: 'end', ok: false }, name)
  }
  const filtered = await run(echo, ['-q'], { input: lines.slice(1, -1).join('\n') })
  t.equal(filtered.stderr, '', 'rows without any run are never refused')
  t.match(records(filtered.stdout).at(-1), { kind: 'end', ok: true })
})

t.test('a failed record ends the command after what preceded it', async t => {
  const { dir, file } = scratch(t)
  const path = file('in.ndjson', rows(3))
  const { stdout, stderr, status } = await run(echo, ['--fail', 'i1', path], { cwd: dir })
  t.equal(status, 1)
  t.same(kinds(stdout), ['run', 'instance', 'end'])
  t.match(records(stdout).at(-1), { ok: false })
  t.match(stderr, `cg-echo: ${path}:2: o/r has no such commit: check base_commit\ncg-echo: 3 in, 1 out`)
  t.notMatch(stderr, /^ +at /m)
})

t.test('a command that is done does not wait for input that may still come', async t => {
  const { child, done } = start(echo, ['-q', '--fail', 'i1'], { input: null })
  let last = 0
  child.stdout!.on('data', () => {
    last = Date.now()
  })
  child.stdin!.write(rows(3))
  t.equal((await done).status, 1)
  t.ok(Date.now() - last < 4000, `${Date.now() - last} ms after its output`)
})

t.test('with -k a failed record becomes a fault in its place, and the status says so', async t => {
  const { stdout, stderr, status } = await run(echo, ['-k', '--fail', 'i1'], { input: rows(3) })
  t.equal(status, 3)
  t.same(kinds(stdout), ['run', 'instance', 'fault', 'instance', 'end'])
  t.same(records(stdout)[2], {
    kind: 'fault',
    v: 1,
    stage: 'echo',
    code: 'E_COMMIT_MISSING',
    message: 'o/r has no such commit: check base_commit',
    of: 'i1',
    retry: false,
  })
  t.match(records(stdout).at(-1), { out: 2, faults: 1, ok: true })
  t.match(stderr, /^cg-echo: -:2: o\/r has no such commit/)
})

t.test("faults of others pass and are not counted as one's own", async t => {
  const first = await run(echo, ['-qk', '--fail', 'i1'], { input: rows(3) })
  const { stdout, stderr, status } = await run(echo, [], { input: first.stdout })
  t.equal(status, 0)
  t.ok(kinds(stdout).includes('fault'))
  t.match(stderr, /2 in, 2 out, 0 cached, 0 faults/)
})

t.test('--max-faults', async t => {
  const { stdout, stderr, status } = await run(echo, ['-k', '--max-faults', '1', '-j1', '--fail', 'i1', '--fail', 'i2'], { input: rows(5) })
  t.equal(status, 1)
  t.match(stderr, /more than 1 faults: look at the first ones, or raise --max-faults/)
  t.same(kinds(stdout), ['run', 'instance', 'fault', 'end'])
})

t.test('nothing done', async t => {
  const all = await run(echo, ['-k', '--fail', 'i0', '--fail', 'i1'], { input: rows(2) })
  t.equal(all.status, 4)
  t.match(all.stderr, /none of 2 records could be done/)
  const other = await run(echo, [], { input: '{"kind":"weather"}\n' })
  t.equal(other.status, 4)
  t.match(other.stderr, /1 lines of input, and no instance record among them: is this the right file\?/)
})

t.test('cached work counts as done, and is counted; the output is the same', async t => {
  const { dir } = scratch(t)
  const args = ['--memo', '--cache', join(dir, 'c.db')]
  const first = await run(echo, args, { input: rows(3) })
  const second = await run(echo, args, { input: rows(3) })
  t.equal(second.stdout, first.stdout)
  t.match(second.stderr, /3 in, 3 out, 3 cached, 0 faults/)
  t.match((await run(echo, [...args, '--refresh'], { input: rows(3) })).stderr, /0 cached/)
  const only = await run(echo, [...args, '-k', '--cache-only'], { input: rows(4) })
  t.equal(only.status, 3)
  t.match(records(only.stdout)[4], { kind: 'fault', code: 'E_CACHE_MISS', retry: true })
})

t.test('--timeout', async t => {
  const { stdout, status } = await run(echo, ['-k', '--timeout', '0.05', '--wait', '2000'], { input: rows(1) })
  t.equal(status, 4)
  t.match(records(stdout)[1], { code: 'E_TIMEOUT', message: 'took longer than 0.05 s: raise --timeout', retry: true })
})

t.test('-o appears complete or not at all', async t => {
  const { dir, file } = scratch(t)
  const out = join(dir, 'out.ndjson')
  t.equal((await run(echo, ['-o', out], { input: rows(2) })).stdout, '')
  const good = readFileSync(out, 'utf8')
  t.same(kinds(good), ['run', 'instance', 'instance', 'end'])

  const bad = await run(echo, ['-o', out, '--fail', 'i1'], { input: rows(2) })
  t.equal(bad.status, 1)
  t.equal(readFileSync(out, 'utf8'), good, 'what was there stays')
  t.match(bad.stderr, `what was done is in ${out}.partial`)
  t.same(kinds(readFileSync(`${out}.partial`, 'utf8')), ['run', 'instance', 'end'])
  t.match(await shell(`ls ${dir}`), { stdout: 'out.ndjson\nout.ndjson.partial\n' }, 'nothing else is left')

  const nowhere = await run(echo, ['-o', join(dir, 'no', 'out')], { input: rows(1) })
  t.equal(nowhere.status, 1)
  t.match(nowhere.stderr, /no\/out: there is no such directory: make it first/)
  t.equal((await run(echo, ['-q', '-o', file('same', rows(2)), join(dir, 'same')])).status, 0, 'input and output may be the same file')
  t.same(kinds(readFileSync(join(dir, 'same'), 'utf8')), ['run', 'instance', 'instance', 'end'])
})

t.test('-o writes straight to what is no file, and leaves it what it is', async t => {
  const { dir, file } = scratch(t)
  const pipe = join(dir, 'pipe')
  execFileSync('mkfifo', [pipe])
  const { stdout, status } = await shell(`timeout 20 cat ${pipe} & $ECHO -q -o ${pipe} < <(printf '%s' '${rows(2)}'); s=$?; wait; exit $s`)
  t.equal(status, 0)
  t.same(kinds(stdout), ['run', 'instance', 'instance', 'end'])
  t.ok(lstatSync(pipe).isFIFO(), 'a rename would have put a file in its place')
  t.same(readdirSync(dir), ['pipe'])

  const log = file('log', rows(1))
  t.equal((await shell(`$ECHO -q -o /proc/self/fd/1 < <(printf '%s' '${rows(2)}') >> ${log}`)).status, 0)
  t.same(kinds(readFileSync(log, 'utf8')), [undefined, 'run', 'instance', 'instance', 'end'], 'appended as the shell was told to')

  symlinkSync('log', join(dir, 'link'))
  t.equal((await run(echo, ['-q', '-o', join(dir, 'link')], { input: rows(1) })).status, 0)
  t.ok(lstatSync(join(dir, 'link')).isSymbolicLink())
  t.same(kinds(readFileSync(log, 'utf8')), ['run', 'instance', 'end'], 'the file that a link leads to')

  const folder = await run(echo, ['-o', dir], { input: rows(1) })
  t.equal(folder.status, 1)
  t.match(folder.stderr, `${dir}: a directory: name a file in it`)
})

t.test('a full disk is said, with the name of the output', async t => {
  const { stderr, status } = await shell(`$ECHO < <(printf '%s' '${rows(2)}') > /dev/full`)
  t.equal(status, 1)
  t.match(stderr, /^cg-echo: standard output: no space left on the device: free some$/m)
})

t.test('a reader that stops reading is no failure', async t => {
  const { dir, file } = scratch(t)
  file('in', rows(2000))
  const { stdout, stderr, status } = await shell(`$ECHO --size 2000 in | head -1 | cut -c1-13; ${echoStatuses}`, dir)
  t.equal(stdout, '{"kind":"run"\n0 0 0\n')
  t.equal(stderr, '')
  t.equal(status, 0)
})

t.test('nothing is lost on the way out', async t => {
  const { dir, file } = scratch(t)
  file('in', rows(3000))
  const { stdout, status } = await shell('$ECHO -q --no-run --size 500 in | (sleep 0.5; cat) | wc -lc', dir)
  t.equal(status, 0)
  t.match(stdout.trim().split(/\s+/)[0], '3000')
})

t.test('a bug says that it is one; the stack comes with -vv', async t => {
  const short = await run(echo, ['--break', 'i1'], { input: rows(3) })
  t.equal(short.status, 1)
  t.match(short.stderr, /^cg-echo: this is a bug: TypeError: x is not a function: report it with the command line \(-vv shows where\)$/m)
  t.notMatch(short.stderr, /^ +at /m)
  t.match((await run(echo, ['-vv', '--break', 'i1'], { input: rows(3) })).stderr, /^ +at .*echo/m)
})

t.test('--progress always, without a terminal', async t => {
  const { stderr } = await run(echo, ['--progress', 'always', '--wait', '1'], { input: rows(3) })
  t.match(stderr, /^cg-echo: 1, i0$/m)
})

t.test('commands that read no records', async t => {
  t.match(await run(echo, ['list', 'b', 'a', '--reverse']), { stdout: 'a\nb\n', stderr: '', status: 0 })
  const alone = await run(echo, ['--alone', '--no-run'], { input: null })
  t.match(alone, { stdout: 'alone\n', status: 0 })
})
