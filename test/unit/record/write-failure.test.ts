import { rejects } from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { constants } from 'node:os'
import t from 'tap'
import { FatalError, RecordFault } from '#cg/record/fault.js'
import { writeFailure, writing } from '#cg/record/write-failure.js'

const failed = (code: string, errno = -1) => Object.assign(new Error(`${code}: so it is, write`), { code, errno, syscall: 'write' })

t.test('which file, what is wrong, what to do', async t => {
  const said = (error: Error) => (writeFailure(error, 'dir/file') as Error).message
  t.equal(said(failed('ENOSPC')), 'dir/file: no space left on the device: free some')
  t.equal(
    said(failed('UNKNOWN', -constants.errno.EDQUOT)),
    'dir/file: the disk quota is used up: free some space',
    'Node has no name for it',
  )
  t.match(said(failed('EROFS')), /^dir\/file: the file system is read-only: mount it writable/)
  t.match(said(failed('ELOOP')), /^dir\/file: cannot be written \(ELOOP: so it is, write\): name another place$/)
})

t.test('other errors stay what they are', async t => {
  for (const error of [
    new FatalError('E_RUN', 'x'),
    new RecordFault('E_STORE', 'x'),
    new TypeError('a bug'),
    Object.assign(new Error('x'), { code: 'E_NAN' }),
  ])
    t.equal(writeFailure(error, 'file'), error)
})

t.test('of work that throws and of work that rejects', async t => {
  t.throws(() => writing('file', () => writeFileSync('/proc/none/x', '')), { name: 'FatalError', code: 'E_WRITE', message: /^file: / })
  await rejects(
    writing('file', () => mkdir('/proc/none/x')),
    { name: 'FatalError', code: 'E_WRITE', message: /^file: / },
  )
  t.equal(
    writing('file', () => 7),
    7,
  )
  t.equal(await writing('file', async () => 7), 7)
  t.throws(() => writing('file', () => mkdirSync('/proc/version')), { code: 'E_WRITE', message: /^file: cannot be written \(EEXIST/ })
})
