import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { scratch } from './process.js'

const place = (tool: string) => spawnSync('/bin/bash', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).stdout.trim()

/** Runs make with nothing in PATH but these tools. */
function make(dir: string, target: string, tools: string[]) {
  const bin = join(dir, 'bin')
  mkdirSync(bin, { recursive: true })
  for (const tool of ['make', 'bash', 'sh', ...tools]) symlinkSync(place(tool), join(bin, tool))
  return spawnSync(join(bin, 'make'), ['--dry-run', target], { encoding: 'utf8', env: { PATH: bin }, stdio: ['ignore', 'pipe', 'pipe'] })
}

const all = ['node', 'npm', 'python3', 'g++', 'git']
for (const missing of ['node', 'python3', 'g++', 'git'])
  t.test(`without ${missing} make says so in one line`, async t => {
    const { stderr, status } = make(
      scratch(t).dir,
      'build',
      all.filter(tool => tool !== missing),
    )
    t.equal(status, 2)
    t.match(
      stderr,
      new RegExp(`^Makefile:\\d+: \\*\\*\\* missing: ${missing.replaceAll('+', '\\+')}\\. Install them: .*apt-get install.*\\n$`),
    )
  })

t.test('clean needs none of them', async t => t.equal(make(scratch(t).dir, 'clean', []).status, 0))
