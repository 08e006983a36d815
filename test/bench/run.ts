/**
 * Runs the benchmarks, one after the other: `make bench`, or `make bench ONLY=NAME` for one.
 *
 * Each prints one JSON line a figure; progress goes to standard error. A figure that misses its target is a figure like any other (`ok` is false); exit status 1
 * is for a benchmark that could not be run, 2 for a name that there is not.
 */
import type { Bench } from './bench.js'
import { machine } from './machine.js'

const benches: Record<string, () => Promise<Bench>> = {
  'lora-step-batched': async () => (await import('./lora-step.js')).loraStep('batched'),
  'lora-step-shared': async () => (await import('./lora-step.js')).loraStep('shared'),
  'forward-logprobs': async () => (await import('./forward-logprobs.js')).forwardLogprobs,
  'demo-step': async () => (await import('./demo-step.js')).demoStep,
  'decode-1': async () => (await import('./decode.js')).decode(1),
  'decode-8': async () => (await import('./decode.js')).decode(8),
  'sampler-mismatch': async () => (await import('./sampler-mismatch.js')).samplerMismatch,
  gemm: async () => (await import('./gemm.js')).gemm,
  reference: async () => (await import('./reference.js')).reference,
  tools: async () => (await import('./tools.js')).tools,
}

const only = process.argv[2] || undefined
if (only !== undefined && !Object.hasOwn(benches, only)) {
  process.stderr.write(`bench: no benchmark is called ${only}: ${Object.keys(benches).join(', ')}\n`)
  process.exitCode = 2
} else {
  const { cpu, isa } = await machine()
  for (const [name, load] of Object.entries(benches)) {
    if (only !== undefined && only !== name) continue
    const say = (message: string) => process.stderr.write(`${name}: ${message}\n`)
    try {
      const bench = await load()
      for await (const figure of bench(say)) process.stdout.write(`${JSON.stringify({ ...figure, cpu, isa })}\n`)
    } catch (error) {
      say((error as Error).message)
      process.exitCode = 1
    }
  }
}
