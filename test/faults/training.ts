import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { barrier, pairedRollout } from '../unit/train/made-rollouts.js'
import type { Job } from './every-change.js'
import { listing } from './listing.js'

const model = ['--model', 'fixtures/model', '--lora-rank', '2', '--lora-targets', 'q', '--lr', '1e-3']

/** Groups of two rollouts with advantages of both signs, a barrier after each: `steps` steps. */
export function trainingInput(steps: number): string {
  const records = Array.from({ length: steps }, (_, step) => [
    ...[0, 1].map(sample => pairedRollout(step, sample)),
    barrier(step, 1).record,
  ])
  return records.flat().map(record => `${JSON.stringify(record)}\n`).join('') // biome-ignore format: one thought
}

/** Two steps of cg-train grpo that publish their versions, hand an adapter out and write their records into a file. */
export const publishing: Job = {
  script: 'bin/cg-train',
  args: dir => [
    'grpo',
    ...model,
    '--publish',
    join(dir, 'run'),
    '--resume',
    '--keep',
    '9',
    '--out',
    join(dir, 'out'),
    '-o',
    join(dir, 'steps.ndjson'),
  ],
  input: trainingInput(2),
  leave: /^run\/(trainer\.json|trainer\.json\.new|lock)$/,
  check: (t, dir, whole) => {
    const now = listing(dir)
    const versions = existsSync(join(dir, 'run')) ? readdirSync(join(dir, 'run')).filter(name => /^v\d+$/.test(name)) : []
    for (const place of [...versions.map(name => `run/${name}`), 'out', 'steps.ndjson', 'run/run.json'])
      if (existsSync(join(dir, place))) t.match(below(now, place), below(whole, place), `${place} is there, so it is whole`)
  },
}

/** cg-train sft, whose rows wait on the disk under $TMPDIR. */
export const spooling: Job = {
  script: 'bin/cg-train',
  args: dir => ['sft', ...model, '--out', join(dir, 'out'), '--batch-size', '2', '--epochs', '2'],
  env: dir => ({ TMPDIR: dir }),
  input: trainingInput(2),
  check: (t, dir, whole) => {
    if (existsSync(join(dir, 'out'))) t.strictSame(below(listing(dir), 'out'), below(whole, 'out'), 'an adapter that is there is whole')
  },
}

function below(files: Record<string, string>, place: string): Record<string, string> {
  // m and v of all but the newest two versions go in time
  return Object.fromEntries(
    Object.entries(files).filter(([name]) => (name === place || name.startsWith(`${place}/`)) && !name.endsWith('optimizer.safetensors')),
  )
}
