import type { LoraConfig, Model, StoredType, Trained } from '../engine/types.js'
import { adapterDigest, adapterFile, modelDigest } from '../model/model-digest.js'
import { type Companions, companionFile, copyCompanions } from './companions.js'

/** What a run makes of a model, and how it is kept: an adapter, or the model itself. */
export type Product = {
  /** What it starts from, the same each time. */
  start(): Promise<Trained>
  /** What lies in a directory; a whole model's values come with the optimiser's state. */
  load(dir: string): Promise<Trained>
  /** Writes all of its files into an existing directory. */
  save(trained: Trained, dir: string): Promise<void>
  /** Names its content; what else lies in the directory does not count. */
  digest(dir: string): Promise<string>
  /** Is this the name of a file that `save` may write? */
  owns(name: string): boolean
  /** What `cg-rollout --policy` calls it. */
  policy(dir: string): string
}

/** A LoRA adapter of the model in `modelDir`, fresh or going on from another. */
export function adapterProduct(model: Model, modelDir: string, lora: LoraConfig, seed: bigint, init: string | undefined): Product {
  return {
    start: () => (init === undefined ? model.newAdapter(lora, seed) : model.loadAdapter(init)),
    load: dir => model.loadAdapter(dir),
    save: (adapter, dir) => adapter.save(dir),
    digest: adapterDigest,
    owns: ownsAdapterFile,
    policy: dir => `native:${modelDir}@${dir}`,
  }
}

/**
 * All weights of a model, kept as a checkpoint directory that any command loads: model.safetensors, and the files that a tokenizer and a chat need.
 *
 * The model gives its weights once: `start` and `load` hand out the same ones.
 */
export function modelProduct(model: Model, dtype: StoredType | undefined, companions: Companions): Product {
  let weights: Promise<Trained> | undefined
  const only = () => {
    weights ??= model.weights(dtype ? { dtype } : {})
    return weights
  }
  return {
    start: only,
    load: only,
    async save(trained, dir) {
      await trained.save(dir)
      copyCompanions(companions, dtype, dir)
    },
    digest: modelDigest,
    owns: ownsModelFile,
    policy: dir => `native:${dir}`,
  }
}

/** A file of a PEFT directory that may be replaced. */
export function ownsAdapterFile(name: string): boolean {
  return adapterFile(name) || name === 'README.md'
}

/** A file of a checkpoint directory that may be replaced. */
export function ownsModelFile(name: string): boolean {
  return name === 'model.safetensors' || name === 'config.json' || companionFile(name) || name === 'README.md'
}
