import { once } from 'node:events'
import { resolve } from 'node:path'
import { openCache } from '#cg/store/sqlite-cache.js'
import { echo, records, rows, run, start } from './process.js'

const count = 45
/** Large enough to be packed, and for the pages of one commit to be many. */
const word = 'w'
const size = 6000

/**
 * Three pipes' worth of processes read and write one cache at once; one is killed in the middle of its work, while results are pruned twice. Returns what is
 * wrong, nothing as a rule: the others end well with all their rows, and every value that the file holds is the right one.
 */
export async function storm(dir: string, round: number): Promise<string[]> {
  const file = `${dir}/cache.db`
  const wrong: string[] = []
  const args = ['--memo', '--word', word, '--size', String(size), '--wait', '4', '-j', '3', '--no-run', '--cache', file]
  const stages = [0, 20, 40].map(from => ({ from, ...start(echo, args, { input: rows(count, from) }) }))
  const victim = start(echo, args, { input: null })
  victim.child.stdin!.write(rows(count, round % 50))
  await once(victim.child.stdout!, 'data')
  victim.child.kill('SIGKILL')
  for (let times = 0; times < 2; times++) {
    const pruned = await run(resolve('bin/cg-worktree'), ['prune', '--all', '--results', '--store', `${dir}/store`, '--cache', file])
    if (pruned.status !== 0 || /damaged/.test(pruned.stderr)) wrong.push(`prune: ${pruned.status} ${pruned.stderr}`)
  }
  for (const { from, done } of stages) {
    const { status, stdout, stderr } = await done
    if (status !== 0 || /damaged/.test(stderr)) wrong.push(`echo: ${status} ${stderr}`)
    const got = records(stdout).map(({ instance_id, echo }) => `${instance_id} ${echo === word.repeat(size)}`)
    if (got.join() !== Array.from({ length: count }, (_, n) => `i${n + from} true`).join()) wrong.push(`rows from ${from} are others`)
  }
  if ((await victim.done).signal !== 'SIGKILL') wrong.push('nobody was killed')

  const cache = openCache({ file, warn: message => wrong.push(message) })
  for (let n = 0; n < 120; n++) {
    const value = cache.get({ stage: 'echo', version: 1, id: `i${n}`, word: word.repeat(size) })
    if (value !== undefined && value !== word.repeat(size)) wrong.push(`i${n} is another value`)
  }
  cache.close()
  return wrong
}
