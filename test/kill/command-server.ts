import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '../unit/policy/a-server.js'

/** A server of chat completions that never says the same twice: `word N` counts its answers. */
export async function countingServer(t: { teardown(work: () => unknown): unknown }): Promise<string> {
  let count = 0
  const answer = async () => {
    await sleep(150) // so that a kill falls between two answers
    const content = `word ${++count}: <answer>[{"path": "lib/part_1.py", "ranges": [[1, 4]]}]</answer>`
    return { json: { choices: [{ message: { content }, finish_reason: 'stop' }], usage: { prompt_tokens: 7, completion_tokens: 3 } } }
  }
  return (await serve(t, [answer])).base
}
