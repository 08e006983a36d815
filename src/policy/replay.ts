import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { FatalError, RecordFault } from '../record/fault.js'
import { readRecords } from '../record/read.js'
import type { Policy } from './policy.js'

/**
 * Says again what the rollouts of a file said, turn by turn, by instance and sample; the tools run anew. Its rollouts are text-only.
 *
 * A rollout that asks for more turns than were recorded gets an empty one and ends. Throws FatalError E_REPLAY for a file that holds none, or two of one
 * sample; a sample that is not in it fails with RecordFault E_REPLAY.
 */
export async function replayPolicy(file: string): Promise<Policy> {
  const recorded = new Map<string, string[] | undefined>()
  const hash = createHash('sha256')
  for await (const item of readRecords(file, ['rollout'])) {
    if (item.kind !== 'rollout') continue
    const { instance_id, sample, turns, stop } = item.record
    const key = `${instance_id}\0${sample}`
    if (recorded.has(key))
      throw new FatalError(
        'E_REPLAY',
        `${file}:${item.origin.line}: a second rollout of ${instance_id}, sample ${sample}: keep one of them`,
      )
    const texts = turns.map(turn => turn.text)
    recorded.set(key, stop === 'fault' ? undefined : texts)
    hash.update(JSON.stringify([instance_id, sample, stop === 'fault', texts]))
  }
  if (recorded.size === 0) throw new FatalError('E_REPLAY', `${file}: no rollout in it: name the output of cg-rollout`)
  return {
    identity: { kind: 'replay', name: `replay:${basename(file)}`, content_sha256: hash.digest('hex') },
    tokens: false,
    scripted: true,
    async submit({ instance, sample, turn }) {
      const texts = recorded.get(`${instance.instance_id}\0${sample}`)
      if (!texts) throw new RecordFault('E_REPLAY', `${file} has no rollout of ${instance.instance_id}, sample ${sample}`)
      return { text: texts[turn] ?? '', stop: 'stop' }
    },
    release: () => {},
    close: async () => {},
  }
}
