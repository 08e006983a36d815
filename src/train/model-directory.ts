import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../record/fault.js'

/** The checkpoint directory that a name stands for: a path, or a directory under $CG_MODELS. Throws UsageError when neither is there. */
export function modelDirectory(name: string): string {
  if (existsSync(join(name, 'config.json'))) return name
  const home = process.env.CG_MODELS
  if (home !== undefined && existsSync(join(home, name, 'config.json'))) return join(home, name)
  const looked = home === undefined ? '' : `, nor under ${home}`
  throw new UsageError(`--model ${name}: no config.json there${looked}: name a Hugging Face checkpoint directory`)
}
