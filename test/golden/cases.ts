import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import type { Model } from '#cg/engine/types.js'

/** A folder with a meta.json; `root` is the set it belongs to, which paths in meta.json are relative to. */
export type EngineCase<M> = { name: string; root: string; folder: string; meta: M }

/** Every case of kind `kind` in a set: folders with a meta.json that `accept` takes, at any depth, under any names. */
export function engineCases<M>(
  root: string,
  kind: string,
  accept: (meta: Record<string, unknown>) => boolean = () => true,
): EngineCase<M>[] {
  return folders(join(root, kind)).flatMap(folder => {
    const meta = JSON.parse(readFileSync(join(folder, 'meta.json'), 'utf8'))
    return accept(meta) ? [{ name: relative(root, folder), root, folder, meta }] : []
  })
}

function folders(at: string): string[] {
  if (!existsSync(at)) return []
  const here = existsSync(join(at, 'meta.json')) ? [at] : []
  const below = readdirSync(at, { withFileTypes: true }).filter(entry => entry.isDirectory())
  return [
    ...here,
    ...below
      .map(entry => entry.name)
      .sort()
      .flatMap(name => folders(join(at, name))),
  ]
}

export type Tensors = {
  get(name: string): Float64Array
  has(name: string): boolean
  shape(name: string): number[]
  names(): string[]
  ids(name: string): Int32Array
}

/** A safetensors file of a case by name; a missing tensor is an error that says so. */
export function readTensors(...path: string[]): Tensors {
  const file = join(...path)
  const byName = new Map(
    loadEngine()
      .readSafetensors(file)
      .tensors.map(t => [t.name, t]),
  )
  const find = (name: string) => {
    const tensor = byName.get(name)
    if (!tensor) throw new Error(`${file} has no tensor ${name}`)
    return tensor
  }
  return {
    get: name => find(name).values,
    has: name => byName.has(name),
    shape: name => find(name).shape,
    names: () => [...byName.keys()],
    ids: name => Int32Array.from(find(name).values),
  }
}

/** The stored float64 values where there are any, else float32. */
export function exact(tensors: Tensors, name: string): Float64Array {
  return tensors.get(tensors.has(`${name}_f64`) ? `${name}_f64` : name)
}

/** Loads the checkpoint that a case names, with two threads, gives it to `use` and lets go of it. */
export async function withModel<T>(dir: string, realVocab: number | undefined, use: (model: Model) => Promise<T>): Promise<T> {
  const model = await loadEngine().loadModel(dir, { backend: 'reference', threads: 2, ...(realVocab === undefined ? {} : { realVocab }) })
  try {
    return await use(model)
  } finally {
    model.dispose()
  }
}
