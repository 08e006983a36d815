import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { wrapModel } from './model.js'
import type { NativeEngine } from './native.js'
import type { Engine } from './types.js'

let engine: Engine | undefined

/**
 * The native engine, loaded on first use. The only place that requires the addon.
 *
 * Looks for build/Release/cg.node in the package this module belongs to. Throws E_ADDON when it was not built or does not load on this machine.
 */
export function loadEngine(): Engine {
  engine ??= wrap(requireAddon())
  return engine
}

function requireAddon(): NativeEngine {
  const root = packageRoot(dirname(fileURLToPath(import.meta.url)))
  const file = join(root, 'build', 'Release', 'cg.node')
  if (!existsSync(file)) throw coded('E_ADDON', `the native engine is not built: run make in ${root}`)
  try {
    return createRequire(import.meta.url)(file) as NativeEngine
  } catch (error) {
    throw coded('E_ADDON', `${file} does not load: ${(error as Error).message}: run make clean and make again`)
  }
}

function packageRoot(from: string): string {
  if (existsSync(join(from, 'package.json'))) return from
  const parent = dirname(from)
  if (parent === from) throw coded('E_ADDON', 'no package.json above the engine: the installation is incomplete')
  return packageRoot(parent)
}

function wrap(addon: NativeEngine): Engine {
  const { Cancel, ...functions } = addon
  return {
    ...functions,
    loadModel: async (dir, options) => wrapModel(await addon.loadModel(dir, options), Cancel),
    randomModel: async (config, options) => wrapModel(await addon.randomModel(config, options), Cancel),
  }
}

function coded(code: string, message: string) {
  return Object.assign(new Error(message), { code })
}
