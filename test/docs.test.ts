import { readFileSync } from 'node:fs'
import { globby } from 'globby'
import t from 'tap'
import type { AnyCommand } from '#cg/cli/command.js'
import { recoveryPage, symptoms } from '#cg/cli/man-recovery.js'
import { flagName, sharedOptions } from '#cg/cli/options.js'
import { parse } from '#cg/cli/parse.js'

const stages = ['worktree', 'mine', 'judge', 'rollout', 'reward', 'train', 'eval']
const commands = new Map<string, AnyCommand>()
for (const stage of stages) commands.set(`cg-${stage}`, ((await import(`#cg/cli/${stage}.js`)) as { default: AnyCommand }).default)
const all = [...commands.values()].flatMap(command => [command, ...Object.values(command.subcommands ?? {})])

/** The words of each cg command in a shell line, quotes taken off; what follows a pipe, a semicolon or a redirection is not its own. */
function calls(line: string): string[][] {
  const words = (line.match(/'[^']*'|"[^"]*"|\|\||&&|[|;<>]|[^\s|;<>]+/g) ?? []).map(word => word.replace(/^(['"])(.*)\1$/, '$2'))
  const found: string[][] = []
  let open = false
  let skip = false
  for (const word of words) {
    if (skip) skip = false
    else if (/^(\|\|?|&&|;)$/.test(word)) open = false
    else if (/^[<>]$/.test(word)) skip = true
    else if (commands.has(word)) {
      found.push([word])
      open = true
    } else if (open) found.at(-1)!.push(word)
  }
  return found
}

t.test('shell lines are taken apart', async t => {
  t.same(calls("cg-worktree < a | cg-rollout -n 8 --policy 'native:m' > b; jq . b"), [
    ['cg-worktree'],
    ['cg-rollout', '-n', '8', '--policy', 'native:m'],
  ])
})

t.test('every command line in README and examples can be parsed', async t => {
  const readme = readFileSync('README.md', 'utf8')
    .split('\n')
    .filter(line => /^(?: {4}|\t)/.test(line))
  const lines = [...readme, ...all.flatMap(({ examples }) => examples.map(([, line]) => line))]
  let checked = 0
  for (const line of lines)
    for (const [name, ...argv] of calls(line)) {
      checked++
      t.doesNotThrow(() => parse(commands.get(name!)!, argv), line)
    }
  t.ok(checked > 20, `${checked} lines`)
})

t.test('every option that README names exists', async t => {
  const known = new Set([...Object.keys(sharedOptions), ...all.flatMap(({ options }) => Object.keys(options))].map(flagName))
  const named = [...readFileSync('README.md', 'utf8').matchAll(/(?<![\w-])--([a-z][a-z0-9-]*)/g)].map(([, flag]) => flag!)
  t.ok(named.length > 5)
  t.same(
    [...new Set(named)].filter(flag => !known.has(flag)),
    [],
  )
})

t.test('every message that cg-recovery(7) explains is one that a command says, and README names only those', async t => {
  const sources = (await globby(['src/**/*.ts', '!src/cli/man-recovery.ts'])).map(file =>
    readFileSync(file, 'utf8').replace(/' \+\s*'/g, ''),
  )
  for (const { said } of symptoms)
    t.ok(
      sources.some(text => text.includes(said)),
      said,
    )
  const readme = readFileSync('README.md', 'utf8')
  const quoted = [...readme.slice(readme.indexOf('## When a night run failed')).matchAll(/^\| `… ([^`]*?)( …)?` \|/gm)].map(
    ([, words]) => words!,
  )
  t.ok(quoted.length > 4)
  for (const words of quoted)
    t.ok(
      symptoms.some(({ said }) => said === words),
      words,
    )
  t.match(recoveryPage(), /Type the same command again/)
})
