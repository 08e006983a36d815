import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnyCommand } from './command.js'
import { commandPage } from './man-page.js'
import { recordPage } from './man-record.js'
import { recoveryPage } from './man-recovery.js'

/** Writes the man pages of all commands, cg-record(5) and cg-recovery(7) into a directory: `node dist/cli/man.js DIR`. */
const [directory] = process.argv.slice(2)
if (directory === undefined) throw new Error('usage: man.js DIR')
mkdirSync(directory, { recursive: true })
for (const name of ['worktree', 'mine', 'judge', 'rollout', 'reward', 'train', 'eval']) {
  const { default: command } = (await import(`./${name}.js`)) as { default: AnyCommand }
  writeFileSync(join(directory, `${command.name}.1`), commandPage(command))
}
writeFileSync(join(directory, 'cg-record.5'), recordPage())
writeFileSync(join(directory, 'cg-recovery.7'), recoveryPage())
