import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { noCache } from '#cg/store/cache.js'
import { createToolRunner } from '#cg/tools/call.js'
import { codegrep } from '#cg/tools/codegrep.js'
import { readInside } from '#cg/tools/read-inside.js'
import type { Tree } from '#cg/tools/tree.js'
import { commitChange, git, gitWith, makeRepository, scratch } from '../repo/make-repository.js'
import { preparedTree, treeOf } from './a-tree.js'

t.setTimeout(120_000)

t.test('nothing of a repository is run', async t => {
  const dir = scratch(t)
  const source = join(dir, 'src')
  makeRepository(source, [{ 'a.txt': 'plain\n', 'b.x': 'plain\n', '.gitattributes': '*.x filter=evil diff=evil\n*.txt ident\n' }])
  const ran = join(dir, 'ran')
  for (const hook of ['post-checkout', 'post-index-change', 'reference-transaction', 'pre-auto-gc', 'fsmonitor-watchman']) {
    mkdirSync(join(source, '.git/hooks'), { recursive: true })
    writeFileSync(join(source, '.git/hooks', hook), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 })
  }
  const evil = `sh -c 'touch ${ran}; cat'`
  for (const key of [
    'filter.evil.smudge',
    'filter.evil.clean',
    'filter.evil.process',
    'diff.evil.textconv',
    'core.fsmonitor',
    'core.pager',
    'core.sshCommand',
    'uploadpack.packObjectsHook',
    'alias.ls-tree',
  ])
    git(source, 'config', key, evil)
  const { tree } = await preparedTree(dir, source, [git(source, 'rev-parse', 'HEAD').trim()])
  t.equal((await call(tree, 'read', { path: 'b.x' })).text, '[b.x: lines 1-1 of 1]\n1:plain')
  await call(tree, 'grep', { pattern: 'pl[a]in' })
  t.notOk(existsSync(ran))
})

t.test('attributes do not change a byte', async t => {
  const files = {
    'crlf.txt': 'a\nb\n',
    'ident.txt': '$Id$\n',
    'wide.txt': 'a\n',
    'cr.bat': 'a\r\nb\r\n',
    export: '$Format:%H$\n',
    left: 'out\n',
  }
  const attributes =
    '*.txt text eol=crlf\nident.txt ident\nwide.txt working-tree-encoding=UTF-16\nexport export-subst\nleft export-ignore\n'
  const dir = scratch(t)
  const source = join(dir, 'src')
  makeRepository(source, [files])
  writeFileSync(join(source, '.gitattributes'), attributes)
  git(source, 'add', '.gitattributes')
  git(source, 'commit', '-q', '-m', 'attributes')
  const { path } = await preparedTree(dir, source, [git(source, 'rev-parse', 'HEAD').trim()])
  for (const [name, content] of Object.entries(files)) t.equal(readFileSync(join(path, name), 'latin1'), content, name)
})

t.test('links lead nowhere', async t => {
  const dir = scratch(t)
  const source = join(dir, 'src')
  makeRepository(source, [{ 'real/a.txt': 'root: here\n' }])
  symlinkSync('/etc/passwd', join(source, 'passwd'))
  symlinkSync('/etc', join(source, 'etc'))
  symlinkSync('real', join(source, 'alias'))
  const { tree, slow } = await preparedTree(dir, source, [commitChange(source, {})])
  for (const each of [tree, slow]) {
    t.strictSame(await each.list(), ['real/a.txt'])
    for (const path of ['passwd', 'etc/passwd', 'etc', 'alias/a.txt', 'alias']) {
      t.match(await call(each, 'read', { path }), { text: '[no such file]', status: 'not-found' }, path)
      t.match(await call(each, 'grep', { pattern: 'root:', path }), { text: '[no such file]' }, path)
    }
    t.equal((await call(each, 'grep', { pattern: 'root:' })).text, 'real/a.txt:1:root: here')
    t.equal((await call(each, 'read', { path: '' })).text, 'real/\n[is a directory]')
  }
})

t.test('names of all kinds are shown so that they can be asked for again', async t => {
  const dir = scratch(t)
  const source = join(dir, 'src')
  makeRepository(source, [{ 'plain.txt': 'needle\n' }])
  const names = [
    Buffer.from('-rf'),
    Buffer.from('-'),
    Buffer.from('new\nline.txt'),
    Buffer.from([0x62, 0xff, 0x2e, 0x74, 0x78, 0x74]),
    Buffer.from('"quoted"'),
    Buffer.from('$(touch ran)'),
    Buffer.from('--pre=sh'),
    Buffer.from('a:1:b'),
  ]
  const blob = gitWith(source, 'needle\n', 'hash-object', '-w', '--stdin').trim()
  const entries = names.map(name => Buffer.concat([Buffer.from(`100644 blob ${blob}\t`), name, Buffer.from([0])]))
  const tree1 = gitWith(source, Buffer.concat(entries), 'mktree', '-z').trim()
  const commit = git(source, 'commit-tree', '-m', 'x', tree1).trim()
  git(source, 'update-ref', 'refs/heads/names', commit)
  const { tree, slow } = await preparedTree(dir, source, [commit])
  const shown = ['""quoted""', '"new\\nline.txt"', '$(touch ran)', '-', '--pre=sh', '-rf', 'a:1:b', '"b\\377.txt"']
  shown[0] = '"\\"quoted\\""'
  t.strictSame(new Set(await tree.list()), new Set(shown))
  for (const each of [tree, slow]) {
    const { text } = await call(each, 'grep', { pattern: 'needle' })
    t.strictSame(new Set(text.split('\n')), new Set(shown.map(name => `${name}:1:needle`)))
    for (const path of shown) {
      t.equal((await call(each, 'read', { path })).text, `[${path}: lines 1-1 of 1]\n1:needle`)
      t.equal((await call(each, 'grep', { pattern: 'needle', path })).text, `${path}:1:needle`)
    }
    t.equal((await call(each, 'grep', { pattern: 'needle', glob: '*.txt' })).text.split('\n').length, 2)
  }
})

t.test('a tree with `.git` and `..` in it: the rest is readable, those are not', async t => {
  const dir = scratch(t)
  const source = join(dir, 'src')
  makeRepository(source, [{ 'ok.txt': 'secret\n' }])
  const blob = git(source, 'rev-parse', 'HEAD:ok.txt').trim()
  const inner = mktree(source, `100644 blob ${blob}\tconfig\n`)
  const whole = mktree(
    source,
    `100644 blob ${blob}\tok.txt\n040000 tree ${inner}\t.git\n040000 tree ${inner}\t.GIT\n040000 tree ${inner}\t..\n`,
  )
  const commit = git(source, 'commit-tree', '-m', 'x', whole).trim()
  git(source, 'update-ref', 'refs/heads/evil', commit)
  const { tree, path } = await preparedTree(dir, source, [commit])
  t.strictSame(await tree.list(), ['ok.txt'])
  t.equal((await call(tree, 'grep', { pattern: 'secret' })).text, 'ok.txt:1:secret')
  t.notOk(existsSync(join(path, '.GIT/config')))
  t.notOk(existsSync(join(path, '../config')))
})

t.test('what comes after the commit cannot be reached', async t => {
  const dir = scratch(t)
  const source = join(dir, 'src')
  const [base] = makeRepository(source, [
    { 'a.py': 'bug = 1\n' },
    { 'a.py': 'fixed_by_planted_secret = 1\n', 'new_planted.py': 'x\n' },
  ]) as [string]
  const { tree, slow } = await preparedTree(dir, source, [base])
  for (const each of [tree, slow]) {
    for (const pattern of ['planted', 'plant[e]d', '.*planted.*']) t.equal((await call(each, 'grep', { pattern })).text, '[no matches]')
    t.equal((await call(each, 'glob', { pattern: '*planted*' })).text, '[no files]')
    t.equal((await call(each, 'read', { path: 'new_planted.py' })).text, '[no such file]')
    t.match(await call(each, 'read', { path: 'HEAD:a.py' }), { status: 'not-found' })
    t.match(await call(each, 'read', { path: '.git' }), { status: 'refused' })
    t.match(await call(each, 'grep', { pattern: 'planted', path: `../../../repos` }), { status: 'refused' })
    t.equal((await call(each, 'read', { path: 'a.py' })).text, '[a.py: lines 1-1 of 1]\n1:bug = 1')
  }
})

t.test('a pattern is never an option', async t => {
  const { slow } = await treeOf(t, { a: '--files x\n-f y\n' })
  const cases = { '--files': 'a:1:--files x', '-f': 'a:1:--files x\na:2:-f y', '--pre=sh': '[no matches]', '--': 'a:1:--files x' }
  for (const [pattern, text] of Object.entries(cases)) t.equal((await call(slow, 'grep', { pattern })).text, text)
  t.equal((await call(slow, 'grep', { pattern: '--f[i]les' })).text, 'a:1:--files x')
})

t.test('a worktree in which a file became something else is not searched, and nobody hangs', async t => {
  for (const wreck of [
    (file: string) => spawnSync('mkfifo', [file]),
    (file: string) => symlinkSync('/etc/passwd', file),
    (file: string) => mkdirSync(file),
    () => {},
  ]) {
    const { path, bare, source } = await treeOf(t, { 'a.txt': 'x\n', 'b.txt': 'y\n' })
    rmSync(join(path, 'a.txt'))
    wreck(join(path, 'a.txt'))
    const { worktreeTree } = await import('#cg/tools/worktree-tree.js')
    const tree = git(source, 'rev-parse', 'HEAD^{tree}').trim()
    await t.rejects(worktreeTree({ path, bare, tree }), {
      code: 'E_WORKTREE',
      message: /a\.txt is (?:missing|not the file of the commit): repair it with cg-worktree verify --fix$/,
    })
  }
})

t.test('files are opened without following links at any depth', async t => {
  const dir = scratch(t)
  mkdirSync(join(dir, 'root/sub'), { recursive: true })
  mkdirSync(join(dir, 'root2'))
  writeFileSync(join(dir, 'root/sub/f'), 'in')
  writeFileSync(join(dir, 'root2/f'), 'out')
  symlinkSync('/etc/passwd', join(dir, 'root/link'))
  symlinkSync('../root2', join(dir, 'root/out'))
  symlinkSync('sub', join(dir, 'root/alias'))
  spawnSync('mkfifo', [join(dir, 'root/fifo')])
  const read = (name: string) => readInside(join(dir, 'root'), Buffer.from(name))
  t.strictSame(await read('sub/f'), Buffer.from('in'))
  for (const name of ['link', 'out/f', 'alias/f', 'fifo', 'sub', 'nothing', 'sub/f/x', 'n'.repeat(300)])
    t.equal(await read(name), undefined, name)
})

function call(tree: Tree, tool: string, args: unknown) {
  return createToolRunner({ toolset: codegrep(), cache: noCache, cores: 2 }).call(tree, tool, args)
}

function mktree(dir: string, lines: string): string {
  return gitWith(dir, lines, 'mktree').trim()
}
