import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { OptionTable } from '#cg/cli/options.js'
import grpo from '#cg/cli/train-grpo.js'
import sft from '#cg/cli/train-sft.js'
import type { Item, Output } from '#cg/record/item.js'
import type { Step } from '#cg/record/schema.js'
import type { Runtime } from '#cg/train/runtime.js'
import { trainPolicy } from '#cg/train/train-policy.js'
import { trainWeighted } from '#cg/train/train-weighted.js'

export const model = join(process.cwd(), 'fixtures/model')

/** A directory that goes with its test. */
export function scratchDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'cg-train-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export type Told = { said: string[]; warned: string[] }

/** A command's context as far as training looks at it. */
export function fakeRuntime(over: Partial<Runtime> = {}): Runtime & Told {
  const said: string[] = []
  const warned: string[] = []
  return {
    said,
    warned,
    seed: '0',
    signal: new AbortController().signal,
    say: message => said.push(message),
    warn: message => warned.push(message),
    progress: () => {},
    count: { in: 0, cached: 0 },
    fault: error => {
      throw error
    },
    cleanEnd: () => true,
    upstream: () => [],
    given: () => false,
    ...over,
  }
}

type Values = Record<string, unknown>

function defaults(table: OptionTable): Values {
  return Object.fromEntries(Object.entries(table).map(([name, option]) => [name, option.default]))
}

/** Trains a small adapter (rank 4) on the fixture model by policy gradient; gives the step records. */
export function policyRun(input: AsyncIterable<Item>, options: Values, runtime = fakeRuntime()): Promise<Step[]> {
  const all = { ...defaults(grpo.options), model, loraRank: 4, loraAlpha: 8, lr: 1e-3, ...options }
  return stepsOf(trainPolicy(input, all as never, runtime))
}

/** The same by likelihood. */
export function weightedRun(method: 'sft' | 'awr', input: AsyncIterable<Item>, options: Values, runtime = fakeRuntime()): Promise<Step[]> {
  const all = { ...defaults(sft.options), model, loraRank: 4, loraAlpha: 8, lr: 1e-3, ...options }
  return stepsOf(trainWeighted(method, input, all as never, runtime))
}

async function stepsOf(outputs: AsyncIterable<Output>): Promise<Step[]> {
  const steps: Step[] = []
  for await (const output of outputs) if (output.kind === 'step') steps.push(output as Step)
  return steps
}

/** A record without what a clock measured. */
export function timeless({ timing: _timing, ...rest }: Step) {
  return rest
}

/** Bytes of a version's tensors: adapter, and the optimiser's state. */
export function tensors(dir: string, version: string): [Buffer, Buffer] {
  return [readFileSync(join(dir, version, 'adapter_model.safetensors')), readFileSync(join(dir, version, 'optimizer.safetensors'))]
}
