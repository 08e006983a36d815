import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeDirectory } from '#cg/record/make-directory.js'

t.test('a directory and those above it, and one that is there', async t => {
  const dir = t.testdir()
  makeDirectory(join(dir, 'a/b/c'))
  t.ok(statSync(join(dir, 'a/b/c')).isDirectory())
  makeDirectory(join(dir, 'a/b/c'))
  makeDirectory(`${dir}/a/d/`)
  t.ok(statSync(join(dir, 'a/d')).isDirectory())
  mkdirSync(join(dir, 'real'))
  symlinkSync('real', join(dir, 'link'))
  makeDirectory(join(dir, 'link/e'))
  t.ok(statSync(join(dir, 'real/e')).isDirectory())
})

t.test('what cannot be one is said', async t => {
  const dir = t.testdir()
  writeFileSync(join(dir, 'file'), '')
  symlinkSync('nowhere', join(dir, 'dangling'))
  for (const path of [join(dir, 'file'), join(dir, 'file/a'), join(dir, 'dangling'), join(dir, 'dangling/a'), ''])
    t.throws(() => makeDirectory(path), { code: 'E_WRITE' }, path)
})
