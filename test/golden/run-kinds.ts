import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { accumulation } from './accumulation.js'
import { advantages } from './advantages.js'
import { checkpointRead } from './checkpoint-read.js'
import { endToEnd } from './end-to-end.js'
import { forward } from './forward.js'
import type { GoldenKind, GoldenResult, Measure } from './kind.js'
import { lora } from './lora.js'
import { losses } from './losses.js'
import { optimizer } from './optimizer.js'
import { rope } from './rope.js'
import { sampling } from './sampling.js'
import { train } from './train.js'

const engineKinds = [
  forward,
  rope,
  lora,
  train,
  optimizer,
  losses,
  accumulation,
  advantages,
  endToEnd,
  sampling,
  checkpointRead,
] as unknown as GoldenKind[]

/** What a kind gave: counts, the worst deviation of each quantity, the messages of what failed. */
export type KindReport = { name: string; passed: number; failed: number; notBuilt: number; worst: Measure[]; messages: string[] }

/**
 * Compares the product with everything in a directory laid out like the engine's or the retrieval side's reference data, or with both in folders `engine` and `retrieval`.
 *
 * Kinds and their cases are found by walking; yields a report per kind that is there.
 */
export async function* runKinds(dir: string): AsyncGenerator<KindReport> {
  for (const root of [dir, join(dir, 'engine'), join(dir, 'retrieval')].filter(existsSync)) {
    for (const kind of [...engineKinds, ...(await retrievalKinds())]) {
      const cases = await kind.find(root)
      if (cases.length > 0) yield runKind(kind, cases)
    }
  }
}

async function runKind(kind: GoldenKind, cases: { name: string }[]): Promise<KindReport> {
  const report: KindReport = { name: kind.name, passed: 0, failed: 0, notBuilt: 0, worst: [], messages: [] }
  for (const c of cases) {
    const result = await attempt(kind, c)
    if (result.status === 'passed') report.passed++
    else if (result.status === 'failed') report.failed++
    else report.notBuilt++
    if (result.status === 'failed') report.messages.push(`${c.name}: ${result.message}`)
    if (result.status !== 'not built') for (const measure of measuresOf(kind, result)) keepWorst(report.worst, measure)
  }
  return report
}

async function attempt(kind: GoldenKind, c: { name: string }): Promise<GoldenResult> {
  try {
    return await kind.run(c)
  } catch (error) {
    return { status: 'failed', message: (error as Error).message }
  }
}

function measuresOf(kind: GoldenKind, result: { error?: number; measures?: Measure[] }): Measure[] {
  if (result.measures) return result.measures
  return kind.bound && result.error !== undefined ? [{ what: kind.bound.unit, error: result.error, bound: kind.bound.value }] : []
}

function keepWorst(worst: Measure[], measure: Measure): void {
  const known = worst.find(m => m.what === measure.what)
  if (!known) worst.push({ ...measure })
  else known.error = Math.max(known.error, measure.error)
}

/** The modules beside this one in `retrieval`, each with a list `kinds`. */
async function retrievalKinds(): Promise<GoldenKind[]> {
  const folder = join(import.meta.dirname, 'retrieval')
  if (!existsSync(folder)) return []
  const modules = await Promise.all(
    readdirSync(folder)
      .filter(name => name.endsWith('.js'))
      .sort()
      .map(name => import(join(folder, name)) as Promise<{ kinds?: GoldenKind[] }>),
  )
  return modules.flatMap(module => module.kinds ?? [])
}
