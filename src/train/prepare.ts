import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { backendOf } from '../engine/backend-of.js'
import { loadEngine } from '../engine/load.js'
import type { Engine, Model, ModelOptions } from '../engine/types.js'
import { adapterDigest, modelDigest } from '../model/model-digest.js'
import { createTokenizer } from '../model/tokenizer.js'
import { modelDirectory } from '../policy/parse-policy.js'
import type { Output } from '../record/item.js'
import { type Companions, companionsDigest } from './companions.js'
import { startingShape } from './init-adapter.js'
import { defaultRowsPerPass } from './memory-estimate.js'
import { readModelShape } from './model-shape.js'
import { adapterProduct, modelProduct, ownsAdapterFile, ownsModelFile, type Product } from './product.js'
import { checkOut, type HeldDirectory, holdRunDirectory, placeOut } from './run-directory.js'
import type { Runtime } from './runtime.js'
import type { Limits } from './sequence.js'
import type { Session } from './session.js'
import { type CommonOptions, checkOptions, type WholeOptions } from './settings.js'

/** A model that is loaded, and what the options come to with it. */
export type Prepared = {
  engine: Engine
  model: Model
  modelDir: string
  modelSha256: string
  initAdapterSha256: string | null
  product: Product
  limits: Limits
  maxRowsPerPass: number
  held: HeldDirectory | undefined
}

/**
 * The life of a training run around its steps: checks the options, takes the run directory, loads the model, lets `work` train, hands out what it made, and
 * leaves the directory as done or failed.
 *
 * Throws UsageError for options that do not go together; FatalError and EngineError for a checkpoint or adapter that cannot be used.
 */
export async function* trainingRun(
  options: CommonOptions & Partial<WholeOptions>,
  runtime: Runtime,
  work: (prepared: Prepared, begun: (session: Session) => void) => AsyncGenerator<Output>,
): AsyncGenerator<Output> {
  checkOptions(options)
  if (options.out !== undefined) checkOut(options.out, options.full ? ownsModelFile : ownsAdapterFile)
  const modelDir = modelDirectory(options.model)
  const held = options.publish === undefined ? undefined : holdRunDirectory(options.publish, options.resume)
  let session: Session | undefined
  let ok = false
  try {
    const prepared = await prepare(options, runtime, modelDir, held)
    yield* work(prepared, begun => {
      session = begun
    })
    // an interrupted run goes on in its directory; without one this is all that is left of it
    if (session && (!runtime.signal.aborted || !held)) await handOut(options, session, runtime)
    ok = !runtime.signal.aborted
  } finally {
    session?.dispose()
    held?.heartbeat.stop(ok ? 'done' : 'failed')
    held?.release()
  }
}

async function prepare(
  options: CommonOptions & Partial<WholeOptions>,
  runtime: Runtime,
  modelDir: string,
  held: HeldDirectory | undefined,
): Promise<Prepared> {
  const companions: Companions = { config: options.modelConfig ?? join(modelDir, 'config.json'), dir: modelDir }
  const shape = readModelShape(companions.config)
  const engine = loadEngine()
  const realVocab = tokenizerRows(modelDir)
  const loading: ModelOptions = {
    backend: backendOf(options.device),
    dtype: options.dtype,
    threads: options.threads,
    ...(realVocab ? { realVocab } : {}),
  }
  const seed = BigInt(runtime.seed)
  const lora = options.full ? undefined : startingShape(options, runtime.given)
  const untaught = options.init === 'random'
  const model = untaught ? await engine.randomModel(companions.config, { ...loading, seed }) : await engine.loadModel(modelDir, loading)
  return {
    engine,
    model,
    modelDir,
    modelSha256: untaught ? companionsDigest(companions) : await modelDigest(modelDir),
    initAdapterSha256: options.initAdapter === undefined ? null : await adapterDigest(options.initAdapter),
    product: lora ? adapterProduct(model, modelDir, lora, seed, options.initAdapter) : modelProduct(model, options.saveDtype, companions),
    limits: { realVocab: model.info.realVocab, maxPositions: model.info.maxPositions },
    maxRowsPerPass: options.maxRowsPerPass ?? defaultRowsPerPass(shape, lora),
    held,
  }
}

/** Embedding rows that mean something; undefined without a tokenizer.json: all of them do. */
function tokenizerRows(dir: string): number | undefined {
  const file = join(dir, 'tokenizer.json')
  return existsSync(file) ? createTokenizer(JSON.parse(readFileSync(file, 'utf8'))).vocab : undefined
}

async function handOut(options: CommonOptions, session: Session, runtime: Runtime): Promise<void> {
  const { save, version } = session.chosen(options.choose)
  if (options.out !== undefined) await placeOut(options.out, save)
  if (options.choose === 'best' && version !== undefined) runtime.say(`the best version is ${version}`)
}
