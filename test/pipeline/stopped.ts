import type { Test } from 'tap'
import { rows, scratch, shell } from './process.js'

/** A pipe of three whose middle stands still for a while (SIGSTOP), as under a debugger or on a machine that swaps, ends as if it had not. */
export async function stoppedNeighbour(t: Test, seconds: number): Promise<void> {
  const { dir, file } = scratch(t)
  file('in', rows(400))
  const pipe = (out: string) =>
    `$ECHO -q --size 2000 in | (echo $BASHPID > pid; exec $ECHO -q --word again) | $ECHO -q --word last > ${out}`
  await shell(pipe('usual'), dir)
  const line = `(${pipe('stopped')}) & until [ -s pid ]; do sleep 0.05; done; sleep 0.5; kill -STOP $(cat pid); sleep ${seconds}; kill -CONT $(cat pid); wait $!`
  const { status, stderr } = await shell(`rm pid; ${line} && cmp usual stopped`, dir)
  t.equal(status, 0)
  t.equal(stderr, '')
}
