import { loadEngine } from '#cg/engine/load.js'

/** What figures depend on: the CPU, and the instruction set that our backend takes on it ($CG_ISA). */
export async function machine(): Promise<{ cpu: string; isa: string; features: string[] }> {
  const engine = loadEngine()
  const { model, features } = engine.cpu()
  const small = await engine.loadModel('fixtures/model', { backend: 'cpu', threads: 1 })
  const isa = small.info.device.split(', ')[1]!
  small.dispose()
  return { cpu: model.trim(), isa, features }
}
