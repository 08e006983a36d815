import { closeSync, ftruncateSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { type Random, random } from '../property/generate.js'
import { minimise } from './minimise.js'
import { mutate } from './mutate.js'
import type { Target } from './target.js'
import { loadTarget } from './targets.js'

/** What a worker tells the program that started it. */
export type Progress = { executions: number; outcomes: number; found?: string }

const everyMs = 250
/** Less than the parent's patience. */
const minimiseMs = 20_000
/** Inputs of the corpus that came by what they did; more would be a list of variations. */
const corpusLimit = 4000

/**
 * Does the executions in a process of its own, because they may crash it or never end: worker.js TARGET DIR seconds|inputs N SEED, or TARGET DIR input FILE.
 *
 * The input at hand stands in DIR/current before it is tried. A broken promise ends the work: the smallest input for it goes to DIR/found, its words to the parent.
 */
async function main([name, dir, mode, amount, seed]: string[]): Promise<void> {
  const target = await loadTarget(name!)
  const tell = (progress: Progress) => process.send?.(progress)
  try {
    if (mode === 'input') {
      const words = await problem(target, readFileSync(amount!))
      tell({ executions: 1, outcomes: 1, ...(words === undefined ? {} : { found: words }) })
    } else await fuzz(target, dir!, { [mode!]: Number(amount) }, Number(seed), tell)
  } finally {
    await target.close?.()
    process.disconnect?.()
  }
}

async function fuzz(
  target: Target,
  dir: string,
  limit: { seconds?: number; inputs?: number },
  seed: number,
  tell: (progress: Progress) => void,
): Promise<void> {
  const corpus = target.corpus()
  const outcomes = new Set<string>()
  const chance = random(seed)
  const current = openSync(`${dir}/current`, 'w')
  const began = performance.now()
  let told = began
  let executions = 0
  const more = () => (limit.inputs === undefined ? performance.now() - began < limit.seconds! * 1000 : executions < limit.inputs)
  while (more()) {
    const input = executions < corpus.length ? corpus[executions]! : mutate(corpus, target.words, target.maxBytes, chance)
    ftruncateSync(current)
    writeSync(current, input, 0, input.length, 0)
    try {
      const outcome = await target.check(input, chanceOf(input))
      if (!outcomes.has(outcome)) {
        outcomes.add(outcome)
        if (executions >= corpus.length && corpus.length < corpusLimit) corpus.push(input)
      }
    } catch (error) {
      const words = wordsOf(error)
      const until = performance.now() + minimiseMs
      const same = async (shorter: Buffer) => performance.now() < until && kindOf((await problem(target, shorter)) ?? '') === kindOf(words)
      writeFileSync(`${dir}/found`, await minimise(input, same, 3000))
      tell({ executions, outcomes: outcomes.size, found: words })
      return
    }
    executions++
    if (performance.now() - told > everyMs) {
      told = performance.now()
      tell({ executions, outcomes: outcomes.size })
      await new Promise(setImmediate)
    }
  }
  closeSync(current)
  tell({ executions, outcomes: outcomes.size })
}

async function problem(target: Target, input: Buffer): Promise<string | undefined> {
  try {
    await target.check(input, chanceOf(input))
    return undefined
  } catch (error) {
    return wordsOf(error)
  }
}

function chanceOf(input: Buffer): Random {
  return random(crc32(input))
}

/** Messages that differ in figures and quoted text speak of one fault. */
function kindOf(words: string): string {
  return words.split('\n')[0]!.replace(/\d+|"[^"]*"/g, '#')
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.constructor === Error ? error.message : (error.stack ?? error.message).split('\n').slice(0, 4).join('\n')
}

await main(process.argv.slice(2))
