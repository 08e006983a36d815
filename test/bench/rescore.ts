import { parseArgs } from 'node:util'
import type { Precision } from '#cg/engine/types.js'
import { scoreAgain } from './score-again.js'

/**
 * `npm run rescore -- ROLLOUTS.ndjson [--model DIR] [--adapter DIR] [--dtype fp32|bf16] [--threads N]`: are the sampler's log-probs the trainer's?
 *
 * Scores stored rollouts with the trainer's pass; the last line is `N tokens, largest difference X`, in nats, 0 where every bit is the same. Exit status 1 where
 * it is not 0 although both are of one kind of arithmetic, or where something is missing.
 */
const usage = 'usage: npm run rescore -- ROLLOUTS.ndjson [--model DIR] [--adapter DIR] [--dtype fp32|bf16] [--threads N]'

try {
  const { file, ...options } = commandLine()
  const { rollouts, tokens, largest, at, recorded, ours } = await scoreAgain(file, options)
  process.stdout.write(`${rollouts} rollouts, sampled as ${recorded}, scored as ${ours}\n`)
  if (at) process.stdout.write(`largest at rollout ${at.rollout}, generated token ${at.token}\n`)
  process.stdout.write(`${tokens} tokens, largest difference ${largest}\n`)
  process.exitCode = largest > 0 && recorded === ours ? 1 : 0
} catch (error) {
  process.stderr.write(`rescore: ${(error as Error).message}\n`)
  process.exitCode = (error as Error).message === usage ? 2 : 1
}

function commandLine() {
  const string = { type: 'string' } as const
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { model: string, adapter: string, dtype: string, threads: string },
    })
    const { model, adapter, dtype, threads = '0' } = values
    if (positionals.length !== 1 || !/^(fp32|bf16|)$/.test(dtype ?? '') || !/^\d+$/.test(threads)) throw new Error(usage)
    return { file: positionals[0]!, model, adapter, dtype: dtype as Precision | undefined, threads: Number(threads) }
  } catch {
    throw new Error(usage)
  }
}
