import type { GoldenKind } from '../kind.js'
import { goldenFile } from './files.js'

/** Which entities a patch makes gold (rule `a2agent`): the product has no such rule yet. */
const entities: GoldenKind = {
  name: 'entities',
  find: dir => goldenFile<{ cases: { name: string }[] }>(dir, 'entities', 'cases.json')?.cases ?? [],
  run: () => ({ status: 'not built', message: 'rule a2agent has no implementation yet' }),
}

export const kinds: GoldenKind[] = [entities]
