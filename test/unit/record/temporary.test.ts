import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import t from 'tap'
import { openSink } from '#cg/cli/output.js'
import { leftBehind, sweepTemporaries, temporaryName } from '#cg/record/temporary.js'

const dead = spawnSync('true').pid
const dir = mkdtempSync(join(tmpdir(), 'cg-temporary-'))
t.teardown(() => rmSync(dir, { recursive: true }))

t.test('names are beside the file, and no two are the same', async t => {
  const [one, two] = [temporaryName('/some/file'), temporaryName('/some/file')]
  t.match(one, /^\/some\/file\..*\.tmp$/)
  t.not(one, two)
  t.notOk(leftBehind(basename(one)), 'this process lives')
})

t.test('only those of this host and of processes that have ended are swept', async t => {
  const gone = [`out.${hostname()}.${dead}.0.tmp`, `out.${hostname()}.${dead}.17.tmp`]
  const kept = [
    basename(temporaryName('out')),
    `out.another-host.${dead}.0.tmp`,
    `other.${hostname()}.${dead}.0.tmp`,
    `out.${hostname()}.${dead}.0.tmp.txt`,
    `out.${dead}.tmp`,
  ]
  for (const name of [...gone, ...kept]) writeFileSync(join(dir, name), '')
  sweepTemporaries(join(dir, 'out'))
  t.strictSame(readdirSync(dir).sort(), kept.sort())
  sweepTemporaries(join(dir, 'no', 'such', 'directory'))
})

t.test('an output sweeps what killed writers of the same file left', async t => {
  writeFileSync(join(dir, `rows.${hostname()}.${dead}.0.tmp`), 'half')
  const sink = openSink(join(dir, 'rows'))
  await sink.write('{}\n')
  await sink.drain()
  sink.finish(true)
  t.strictSame(
    readdirSync(dir).filter(name => name.startsWith('rows')),
    ['rows'],
  )
})
