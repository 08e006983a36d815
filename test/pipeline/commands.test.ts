import { accessSync, constants, readFileSync } from 'node:fs'
import t from 'tap'
import type { AnyCommand } from '#cg/cli/command.js'
import { help } from '#cg/cli/help.js'
import { commandPage } from '#cg/cli/man-page.js'
import { run, scratch } from './process.js'

const names = ['worktree', 'mine', 'judge', 'rollout', 'reward', 'train', 'eval'].map(name => `cg-${name}`)
const version: string = JSON.parse(readFileSync('package.json', 'utf8')).version

for (const name of names) {
  const bin = `bin/${name}`
  t.test(name, async t => {
    accessSync(bin, constants.X_OK)
    t.match(await run(bin, ['--help'], { env: { LC_ALL: 'de_DE.UTF-8' } }), { status: 0, stderr: '', stdout: `usage: ${name} ` })
    t.same(await run(bin, ['--version']), { status: 0, signal: null, stderr: '', stdout: `${name} ${version}\n` })
    const command = ((await import(`#cg/cli/${name.slice(3)}.js`)) as { default: AnyCommand }).default
    t.equal(command.name, name)
    for (const [word, one] of [['', command], ...Object.entries(command.subcommands ?? {})] as [string, AnyCommand][]) {
      const wide = help(one)
        .split('\n')
        .filter(line => line.length > 80 && !line.startsWith('    '))
      t.same(wide, [], one.name)
      t.equal(one.name, `${name}${word && ` ${word}`}`)
      t.notMatch(commandPage(one), /undefined|\[object/)
      if (one.unavailable) continue
      const schema = await run(bin, [...(word ? [word] : []), '--schema'])
      t.equal(schema.status, 0, one.name)
      t.match(JSON.parse(schema.stdout), { title: one.name, $defs: {} })
    }
  })
}

t.test('what is not built says so in one line, status 2', async t => {
  for (const args of [[], ['x.ndjson'], ['--schema'], ['--dry-run'], ['--model', 'x']]) {
    t.same(await run('bin/cg-judge', args), {
      status: 2,
      signal: null,
      stdout: '',
      stderr: 'cg-judge: not built yet: this version of cg has no judge\n',
    })
    const mine = await run('bin/cg-mine', args)
    t.match(mine, { status: 2, stdout: '', stderr: /^cg-mine: mining trajectories is not built yet: .*\n$/ })
  }
})

t.test('--dry-run', async t => {
  const { file } = scratch(t)
  const input = file('in.ndjson', '')
  for (const [name, ...args] of [['cg-worktree'], ['cg-mine', 'gold'], ['cg-reward']] as [string, ...string[]][]) {
    const { stdout, stderr, status } = await run(`bin/${name}`, [...args, '--dry-run', input])
    t.equal(status, 0, name)
    t.equal(stdout, '', name)
    t.match(stderr, `reads ${input}`, name)
  }
})
