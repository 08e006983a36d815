import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { execa } from 'execa'
import { adapterDigest, modelDigest } from '#cg/model/model-digest.js'
import { benchDirectory, type Say } from './bench.js'

export const demoModel = 'fixtures/model'
export const demoPrompts = 8
export const demoSamples = 8

/** Rewarded rollouts of one GRPO step as the demo makes them, and the adapter that sampled them (null: the base model). */
export type DemoRollouts = { file: string; adapter: string | null }

/**
 * Samples them once and keeps them in .bench: 8 prompts × 8 rollouts with the demo's limits, from its SFT adapter at its temperature where `make demo` has been
 * run, else from the base model at 1.
 */
export async function demoRollouts(say: Say): Promise<DemoRollouts> {
  const sft = 'build/demo/sft'
  const adapter = existsSync(join(sft, 'adapter_model.safetensors')) ? sft : null
  // by the weights that sample: rollouts of others have other log-probs
  const weights = adapter === null ? await modelDigest(demoModel) : await adapterDigest(adapter)
  const file = join(benchDirectory, `rollouts-${weights.slice(0, 12)}.ndjson`)
  if (!existsSync(file)) {
    mkdirSync(benchDirectory, { recursive: true })
    say(`sampling ${demoPrompts} × ${demoSamples} rollouts into ${file}`)
    const policy = adapter === null ? `native:${demoModel}` : `native:${demoModel}@${adapter} --temperature 1.6`
    const stages = [
      `head -n ${demoPrompts} fixtures/instances/train.ndjson`,
      `bin/cg-worktree -q --source 'file://${resolve('build/fixtures/repos')}/{repo}'`,
      'bin/cg-mine gold -q',
      `bin/cg-rollout -q --policy ${policy} -n ${demoSamples} --max-matches 8 --max-chars 600`,
      `bin/cg-reward -q --scheme codegrep-v3 -o ${file}`,
    ]
    const env = { CG_CACHE: join(benchDirectory, 'cache.sqlite'), CG_STORE: join(benchDirectory, 'store') }
    await execa('bash', ['-o', 'pipefail', '-c', stages.join(' | ')], { env, stdin: 'ignore', stdout: 2, stderr: 2 })
  }
  return { file, adapter }
}
