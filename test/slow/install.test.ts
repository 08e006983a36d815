import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rows, run, scratch } from '../pipeline/process.js'

t.test('what is installed works without the sources, and goes again', async t => {
  const { dir } = scratch(t)
  const where = [`DESTDIR=${dir}`, 'PREFIX=/usr']
  execFileSync('make', ['install', ...where], { stdio: ['ignore', 'ignore', 'inherit'] })
  const bin = (name: string) => join(dir, 'usr', 'bin', name)
  t.match(readdirSync(join(dir, 'usr', 'share', 'man', 'man5')), ['cg-record.5'])
  t.match(readdirSync(join(dir, 'usr', 'share', 'man', 'man7')), ['cg-recovery.7'])
  t.equal(readdirSync(join(dir, 'usr', 'share', 'man', 'man1')).length, 7)
  const lib = join(dir, 'usr', 'lib', 'cg')
  t.ok(existsSync(join(lib, 'build', 'Release', 'cg.node')))
  if (process.platform === 'linux') t.ok(existsSync(join(lib, 'build', 'Release', 'cg-leash')))
  t.notOk(existsSync(join(lib, 'node_modules', 'typescript')), 'no packages that only building needs')
  t.notOk(existsSync(join(lib, 'node_modules', 'better-sqlite3', 'deps')))

  const away = { cwd: dir, env: { CG_CACHE: join(dir, 'cache.db') } }
  t.match(await run(bin('cg-reward'), ['--version'], away), { status: 0, stdout: /^cg-reward \d/ })
  const missing = await run(bin('cg-rollout'), ['-k', '--policy', 'lexical'], { ...away, input: rows(1) })
  t.match(missing.stdout, '"code":"E_NO_WORKTREE"')
  const sqlite = `import { openCache } from ${JSON.stringify(join(lib, 'dist', 'store', 'sqlite-cache.js'))}
    const cache = openCache({ file: 'x.db' }); cache.put({ stage: 's', version: 1 }, 1); cache.flush(); console.log(cache.get({ stage: 's', version: 1 })); cache.close()
    const { loadEngine } = await import(${JSON.stringify(join(lib, 'dist', 'engine', 'load.js'))}); console.log(typeof loadEngine().readerGone(1))`
  t.equal(execFileSync(process.execPath, ['--input-type=module', '-e', sqlite], { cwd: dir, encoding: 'utf8' }), '1\nboolean\n')

  execFileSync('make', ['uninstall', ...where], { stdio: ['ignore', 'ignore', 'inherit'] })
  t.same(readdirSync(join(dir, 'usr', 'bin')), [])
  t.notOk(existsSync(lib))
  t.same(readdirSync(join(dir, 'usr', 'share', 'man', 'man1')), [])
})
