import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { thisProcess } from '#cg/repo/holder.js'
import { startHeartbeat } from '#cg/train/heartbeat.js'
import { lockRunDirectory } from '#cg/train/lock.js'
import { scratchDir } from './in-process.js'

t.test('one writer at a time', async t => {
  const dir = scratchDir(t)
  const release = lockRunDirectory(dir)
  t.match(JSON.parse(readFileSync(join(dir, 'lock'), 'utf8')), { pid: process.pid, host: thisProcess().host, since: /^\d{4}-/ })
  t.throws(() => lockRunDirectory(dir), {
    code: 'E_LOCK',
    message: `${dir} is being trained by process ${process.pid} on ${thisProcess().host}: wait for it, end it, or name another directory`,
  })
  release()
  t.notOk(existsSync(join(dir, 'lock')))
  lockRunDirectory(dir)()
})

t.test('a dead holder is replaced', async t => {
  const dir = scratchDir(t)
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const dead = { ...thisProcess(), pid, start: '1' }
  writeFileSync(join(dir, 'lock'), JSON.stringify(dead))
  lockRunDirectory(dir)()
  // another process that got the same id later is not the holder
  writeFileSync(join(dir, 'lock'), JSON.stringify({ ...thisProcess(), start: '1' }))
  lockRunDirectory(dir)()
  // who broke the lock before may have died over it
  writeFileSync(join(dir, 'lock'), JSON.stringify(dead))
  writeFileSync(join(dir, 'lock.break'), JSON.stringify(dead))
  t.throws(() => lockRunDirectory(dir), { code: 'E_LOCK' })
  lockRunDirectory(dir)()
  // a power failure may have cut either file
  for (const name of ['lock', 'lock.break']) writeFileSync(join(dir, name), '')
  t.throws(() => lockRunDirectory(dir), { code: 'E_LOCK' })
  lockRunDirectory(dir)()
})

t.test('a holder on another host is not judged', async t => {
  const dir = scratchDir(t)
  writeFileSync(join(dir, 'lock'), JSON.stringify({ ...thisProcess(), host: 'elsewhere', pid: 1 }))
  t.throws(() => lockRunDirectory(dir), {
    code: 'E_LOCK',
    message: `${dir} is being trained by process 1 on elsewhere: remove ${join(dir, 'lock')} if that process is gone`,
  })
})

t.test('the heartbeat', async t => {
  const dir = scratchDir(t)
  const read = () => JSON.parse(readFileSync(join(dir, 'trainer.json'), 'utf8'))
  const heart = startHeartbeat(dir)
  t.match(read(), { pid: process.pid, state: 'starting', seen: 0, beat: 1 })
  heart.state('training')
  heart.saw()
  t.match(read(), { state: 'training', seen: 1, beat: 3 })
  heart.stop('done')
  t.match(read(), { state: 'done', seen: 1, beat: 4 })
})
