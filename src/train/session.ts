import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Adapter, Engine, LoraConfig, Model, OptimizerOptions, Trainer } from '../engine/types.js'
import { adapterDigest } from '../model/model-digest.js'
import type { PolicyIdentity, Step } from '../record/schema.js'
import { discardTemporary } from '../record/temporary.js'
import { writing } from '../record/write-failure.js'
import { createAdapterShelf } from './adapter-shelf.js'
import { followBest } from './best.js'
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
  trainer: Trainer
  runId: string
  /** Reference policy of the KL term; null is the base model. */
  reference: Adapter | null
  /** `step` records of an earlier life of this run. */
  committed: Step[]
  /** Rollouts that they were made from. */
  committedRows: number
  /** The adapter of a policy that this run has made, or started from; null is the base model, undefined: not here. */
  adapterOf(policy: PolicyIdentity): Promise<Adapter | null | undefined>
  /**
   * Makes the version of a finished step. `complete` gives the step's record, told where the new adapter already lies, unpublished (a PEFT directory).
   * Returns the record.
   */
  commit(version: number, cursor: Cursor, complete: (adapterDir: string) => Promise<Step>): Promise<Step>
  /** The adapter to hand out: the newest, or the version with the best figure. */
  chosen(which: 'last' | 'best'): Promise<{ adapter: Adapter; version: number | undefined }>
  dispose(): void
}

export type SessionPlan = {
  engine: Engine
  model: Model
  /** Undefined: nothing is kept but the last adapter. */
  held: HeldDirectory | undefined
  wish: RunWish
  lora: LoraConfig
  initAdapter: string | undefined
  optimizer: OptimizerOptions
  seed: bigint
  klReference: 'base' | 'start' | undefined
  keep: number
}

/** Begins a run, or goes on with the one in the held directory. Throws as `beginOrResume` does, and EngineError E_ADAPTER for a start adapter that does not fit. */
export async function openSession(plan: SessionPlan): Promise<Session> {
  const { engine, model, held, wish, initAdapter } = plan
  const start = () => (initAdapter === undefined ? model.newAdapter(plan.lora, plan.seed) : model.loadAdapter(initAdapter))
  const begun = held ? await beginOrResume(held.dir, model, wish, start) : await beginUnkept(wish, start)
  const trainer = model.trainer(begun.adapter, plan.optimizer)
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
        const record = await inTemporary(trainer.trained, complete)
        finished(record)
        return record
      }
      const { dir } = held
      const { staged, sha256 } = await stageVersion(dir, version, trainer.trained)
      const record = await complete(staged)
      await commitVersion(staged, { run_id: begun.runId, version, sha256 }, { saveState: file => trainer.saveState(file), record, cursor })
      appendStep(dir, record)
      finished(record)
      pruneVersions(dir, { lag: wish.lag, keep: plan.keep, best: best.version(), start: fromStart })
      return record
    },
    async chosen(which) {
      const version = which === 'best' ? best.version() : undefined
      if (version === undefined || !held) return { adapter: trainer.trained, version: newest }
      return { adapter: await model.loadAdapter(versionPath(held.dir, version)), version }
    },
    dispose() {
      trainer.dispose()
      shelf.dispose()
      reference?.dispose()
      model.dispose()
    },
  }
}

/** A run of which only the last adapter is kept, under --out. */
async function beginUnkept(wish: RunWish, start: () => Promise<Adapter>): Promise<RunStart> {
  const adapter = await start()
  const id = await inTemporary(adapter, async dir => {
    return runId({ ...wish, start_adapter_sha256: await adapterDigest(dir) })
  })
  return { runId: id, adapter, optimizer: undefined, committed: [], rows: 0 }
}

async function inTemporary<T>(adapter: Adapter, use: (dir: string) => Promise<T>): Promise<T> {
  const dir = writing(`temporary directory ${tmpdir()} ($TMPDIR)`, () => mkdtempSync(join(tmpdir(), 'cg-train-')))
  try {
    await adapter.save(dir)
    return await use(dir)
  } finally {
    discardTemporary(dir)
  }
}
