import type { Adapter } from '../engine/types.js'

export type AdapterShelf = {
  /** The adapter with this digest, loaded unless it stands here; undefined: it is nowhere. */
  get(sha256: string): Promise<Adapter | undefined>
  /** The step is over: adapters that it did not ask for go. */
  tidy(): void
  dispose(): void
}

/** Adapters of earlier versions, for as long as one step after the other asks for them: on-policy each step asks for another, and an adapter may be large. */
export function createAdapterShelf(load: (sha256: string) => Promise<Adapter | undefined>): AdapterShelf {
  const loaded = new Map<string, Adapter>()
  const asked = new Set<string>()
  return {
    async get(sha256) {
      asked.add(sha256)
      const known = loaded.get(sha256)
      if (known) return known
      const adapter = await load(sha256)
      if (adapter) loaded.set(sha256, adapter)
      return adapter
    },
    tidy() {
      for (const [sha256, adapter] of loaded) {
        if (asked.has(sha256)) continue
        adapter.dispose()
        loaded.delete(sha256)
      }
      asked.clear()
    },
    dispose() {
      for (const adapter of loaded.values()) adapter.dispose()
      loaded.clear()
    },
  }
}
