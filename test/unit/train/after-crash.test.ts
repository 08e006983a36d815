import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { FatalError } from '#cg/record/fault.js'
import { thisProcess } from '#cg/repo/holder.js'
import { checkOut, holdRunDirectory, placeOut } from '#cg/train/run-directory.js'
import { scratchDir } from './in-process.js'

const dead = spawnSync('true').pid
const left = (name: string) => `${name}.${hostname()}.${dead}.0.tmp`

/** What a trainer that was killed at its beginning can leave: before run.json stands, and after. */
const leftovers = [left('run.json'), left('lock'), left('lock.break'), left('steps.ndjson'), left('upstream.json'), 'trainer.json.new']

for (const resume of [true, false])
  t.test(`a run directory with nothing but leftovers is empty${resume ? ', with --resume too' : ''}`, async t => {
    const dir = scratchDir(t)
    for (const name of leftovers) writeFileSync(join(dir, name), '{"cut')
    mkdirSync(join(dir, '.v000000.unfinished'))
    writeFileSync(join(dir, 'lock'), JSON.stringify({ ...thisProcess(), pid: dead }))
    const { release, heartbeat } = holdRunDirectory(dir, resume)
    heartbeat.stop('failed')
    release()
    t.strictSame(readdirSync(dir), ['trainer.json'], 'and they go')
  })

t.test('a lock that a power failure left empty is replaced', async t => {
  const dir = scratchDir(t)
  writeFileSync(join(dir, 'lock'), '')
  const { release, heartbeat } = holdRunDirectory(dir, true)
  heartbeat.stop('failed')
  release()
  t.notOk(existsSync(join(dir, 'lock')))
})

/** Writes a word, or fails as a full disk does. */
const adapter = (word: string) => async (dir: string) => {
  writeFileSync(join(dir, 'adapter_config.json'), word)
  if (word === 'full') throw new FatalError('E_WRITE', 'no space')
}
const wordAt = (out: string) => readFileSync(join(out, 'adapter_config.json'), 'utf8')

t.test('--out: the adapter that stands there stays until its successor does', async t => {
  const dir = scratchDir(t)
  const out = join(dir, 'out')
  await placeOut(`${out}/`, adapter('first'))
  await t.rejects(placeOut(out, adapter('full')), { code: 'E_WRITE' })
  t.equal(wordAt(out), 'first')
  t.strictSame(readdirSync(dir), ['out'], 'nothing is left of the other')
  await placeOut(out, adapter('second'))
  t.equal(wordAt(out), 'second')
  t.strictSame(readdirSync(dir), ['out'])
})

t.test('--out: after a crash between the two renames the old adapter comes back', async t => {
  const out = join(scratchDir(t), 'out')
  await placeOut(out, adapter('first'))
  renameSync(out, `${out}.replaced`)
  checkOut(out)
  t.equal(wordAt(out), 'first')
  // and after one that came just later, the new one stays
  mkdirSync(`${out}.replaced`)
  checkOut(out)
  t.equal(wordAt(out), 'first')
  await placeOut(out, adapter('second'))
  t.notOk(existsSync(`${out}.replaced`))
  rmSync(out, { recursive: true })
})
