import { copyFileSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Adapter, Engine, Model, OptimizerOptions, Trained, Trainer } from '../engine/types.js'
import type { PolicyIdentity, Step } from '../record/schema.js'
import { discardTemporary } from '../record/temporary.js'
import { writing } from '../record/write-failure.js'
import { createAdapterShelf } from './adapter-shelf.js'
import { followBest } from './best.js'
import type { Product } from './product.js'
import type { HeldDirectory, RunStart, RunWish } from './run-directory.js'
import { beginOrResume, versionPath } from './run-directory.js'
import { runId } from './run-identity.js'
import { appendStep } from './step-log.js'
import { type Cursor, commitVersion, pruneVersions, readVersion, stageVersion, versionsIn } from './versions.js'

/** A model in training, and what is kept of it. */
export type Session = {
  engine: Engine
  model: Model
  modelSha256: string
  trainer: Trainer<Trained>
  runId: string
  /** Reference policy of the KL term; null is the base model. */
  reference: Adapter | null
  /** `step` records of an earlier life of this run. */
  committed: Step[]
  /** Rollouts that they were made from. */
  committedRows: number
  /** The adapter of a policy that an adapter's run has made, or started from; null is the base model, undefined: not here. */
  adapterOf(policy: PolicyIdentity): Promise<Adapter | null | undefined>
  /**
   * Makes the version of a finished step. `complete` gives the step's record, told where the new version already lies, unpublished.
   * Returns the record.
   */
  commit(version: number, cursor: Cursor, complete: (versionDir: string) => Promise<Step>): Promise<Step>
  /** What to hand out, the newest or the version with the best figure: `save` writes its files into an existing directory. */
  chosen(which: 'last' | 'best'): { save(dir: string): Promise<void>; version: number | undefined }
  dispose(): void
}

export type SessionPlan = {
  engine: Engine
  model: Model
  product: Product
  /** Undefined: nothing is kept but the last version. */
  held: HeldDirectory | undefined
  wish: RunWish
  initAdapter: string | undefined
  optimizer: OptimizerOptions
  klReference: 'base' | 'start' | undefined
  keep: number
}

/** Begins a run, or goes on with the one in the held directory. Throws as `beginOrResume` does, and EngineError E_ADAPTER for a start adapter that does not fit. */
export async function openSession(plan: SessionPlan): Promise<Session> {
  const { engine, model, product, held, wish, initAdapter } = plan
  const begun = held ? await beginOrResume(held.dir, product, wish) : await beginUnkept(wish, product)
  const trainer = model.trainer(begun.trained, plan.optimizer)
  if (begun.optimizer) await trainer.loadState(begun.optimizer)

  // a fresh adapter is the base model: B = 0
  const fromStart = plan.klReference === 'start' && initAdapter !== undefined
  const reference = fromStart ? await model.loadAdapter(held ? versionPath(held.dir, 0) : initAdapter) : null
  const shelf = createAdapterShelf(async sha256 => {
    if (!held) return undefined
    const version = versionsIn(held.dir).find(v => readVersion(held.dir, v).policy.sha256 === sha256)
    return version === undefined ? undefined : model.loadAdapter(versionPath(held.dir, version))
  })
  const best = followBest(begun.committed)
  let newest = begun.committed.at(-1)?.version
  const finished = (record: Step) => {
    best.add(record)
    newest = record.version
    shelf.tidy()
  }

  return {
    engine,
    model,
    modelSha256: wish.model_sha256,
    trainer,
    runId: begun.runId,
    reference,
    committed: begun.committed,
    committedRows: begun.rows,
    async adapterOf(policy) {
      if (policy.adapter_sha256 === undefined) return null
      return shelf.get(policy.adapter_sha256)
    },
    async commit(version, cursor, complete) {
      if (!held) {
        const record = await inTemporary(product, trainer.trained, complete)
        finished(record)
        return record
      }
      const { dir } = held
      const { staged, sha256 } = await stageVersion(dir, version, product, trainer.trained)
      const record = await complete(staged)
      await commitVersion(staged, { run_id: begun.runId, version, sha256 }, { saveState: file => trainer.saveState(file), record, cursor })
      appendStep(dir, record)
      finished(record)
      pruneVersions(dir, { lag: wish.lag, keep: plan.keep, best: best.version(), start: fromStart })
      return record
    },
    chosen(which) {
      const version = which === 'best' ? best.version() : undefined
      if (version === undefined || !held) return { save: dir => product.save(trainer.trained, dir), version: newest }
      const from = versionPath(held.dir, version)
      return { save: async dir => copyOwned(product, from, dir), version }
    },
    dispose() {
      trainer.dispose()
      shelf.dispose()
      reference?.dispose()
      model.dispose()
    },
  }
}

/** A run of which only the last version is kept, under --out. */
async function beginUnkept(wish: RunWish, product: Product): Promise<RunStart> {
  const trained = await product.start()
  const id = await inTemporary(product, trained, async dir => {
    return runId({ ...wish, start_adapter_sha256: await product.digest(dir) })
  })
  return { runId: id, trained, optimizer: undefined, committed: [], rows: 0 }
}

/** The files of a product that lie in a version, without what training goes on with. */
function copyOwned(product: Product, from: string, to: string): void {
  for (const name of readdirSync(from).filter(product.owns)) writing(join(to, name), () => copyFileSync(join(from, name), join(to, name)))
}

async function inTemporary<T>(product: Product, trained: Trained, use: (dir: string) => Promise<T>): Promise<T> {
  const dir = writing(`temporary directory ${tmpdir()} ($TMPDIR)`, () => mkdtempSync(join(tmpdir(), 'cg-train-')))
  try {
    await product.save(trained, dir)
    return await use(dir)
  } finally {
    discardTemporary(dir)
  }
}
