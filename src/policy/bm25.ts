import { type Bm25, bm25, inBm25Corpus } from '../index/bm25.js'
import type { Tree } from '../tools/tree.js'
import { answerText } from './call-text.js'
import type { Policy } from './policy.js'

/** Indexes kept: neighbouring instances often share a tree. */
const capacity = 8

/**
 * The BM25 baseline (CodeGrep, Appendix E): one turn that answers with the `k` best files for the issue text; no calls, no line ranges.
 *
 * The paper's default is 2 files, about as many as its agent names.
 */
export function bm25Policy(k = 2): Policy {
  const indexes = new Map<string, Promise<Bm25>>()
  const indexOf = (tree: Tree): Promise<Bm25> => {
    const known = indexes.get(tree.id) ?? bm25(corpus(tree))
    indexes.delete(tree.id)
    indexes.set(tree.id, known)
    if (indexes.size > capacity) indexes.delete(indexes.keys().next().value!)
    known.catch(() => indexes.delete(tree.id))
    return known
  }
  return {
    identity: { kind: 'bm25', name: k === 2 ? 'bm25' : `bm25:${k}`, k, revision: 1 },
    tokens: false,
    scripted: true,
    async submit({ instance, tree }) {
      const files = (await indexOf(tree)).rank(instance.problem_statement, k)
      return {
        text: answerText(
          files.map(f => f.path),
          [],
        ),
        stop: 'stop',
      }
    },
    release: () => {},
    close: async () => {},
  }
}

async function* corpus(tree: Tree): AsyncGenerator<{ path: string; text: string }> {
  for (const path of await tree.list()) {
    if (!inBm25Corpus(path)) continue
    const file = await tree.read(path)
    if (file.kind === 'file') yield { path, text: Buffer.from(file.bytes).toString('utf8') }
  }
}
