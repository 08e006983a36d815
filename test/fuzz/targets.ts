import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Target } from './target.js'

const modules: Record<string, () => Promise<{ default: Target }>> = {
  records: () => import('./records.js'),
  patch: () => import('./patch.js'),
  answer: () => import('./answer.js'),
  calls: () => import('./calls.js'),
  safetensors: () => import('./safetensors.js'),
  'safetensors-asan': () => import('./safetensors-asan.js'),
  tokenizer: () => import('./tokenizer.js'),
  'tokenizer-file': () => import('./tokenizer-file.js'),
  cache: () => import('./cache.js'),
}

export const targetNames = Object.keys(modules)

export async function loadTarget(name: string): Promise<Target> {
  const load = modules[name]
  if (load === undefined) throw new Error(`no target ${name}: there are ${targetNames.join(', ')}`)
  const target = (await load()).default
  return { ...target, corpus: () => [...keptInputs(name), ...target.corpus()] }
}

/** What broke a promise once, fixtures/fuzz/TARGET; targets that read the same format share them. */
export function keptInputs(name: string): Buffer[] {
  const folder = join('fixtures/fuzz', name.replace(/-asan$/, ''))
  return existsSync(folder) ? readdirSync(folder).map(file => readFileSync(join(folder, file))) : []
}
