import { readCheckpointFiles } from '#cg/model/checkpoint-files.js'
import { createTokenizer } from '#cg/model/tokenizer.js'
import { FatalError } from '#cg/record/fault.js'
import { must, outline, type Target } from './target.js'

type File = { added_tokens: unknown[]; model: { vocab: Record<string, number>; merges: unknown[] } }

/** The fixture's file with its first 300 entries: small enough that a mutation hits something. */
function small(): Buffer {
  const file = structuredClone(readCheckpointFiles('fixtures/model').tokenizer) as File
  const vocab = Object.fromEntries(Object.entries(file.model.vocab).filter(([, id]) => id < 300))
  const known = (merge: unknown) => (Array.isArray(merge) ? merge : String(merge).split(' ')).every(part => part in vocab)
  const merges = file.model.merges.filter(
    merge => known(merge) && (Array.isArray(merge) ? merge : String(merge).split(' ')).join('') in vocab,
  )
  return Buffer.from(JSON.stringify({ ...file, model: { ...file.model, vocab, merges } }))
}

console.warn = () => {} // the library's words about parts it does not know

/** Any JSON as tokenizer.json: it is used, or refused with E_TOKENIZER; text either becomes ids or an error of ours. */
const target: Target = {
  name: 'tokenizer-file',
  words: [
    '"type":',
    '"ByteLevel"',
    '"BPE"',
    '"Unigram"',
    '"WordPiece"',
    '"NFC"',
    '"Regex"',
    '"content":',
    '"id":',
    '-1',
    '1e99',
    'null',
    '[]',
    '{}',
    '"merges":',
    '"vocab":',
    '"added_tokens":',
  ],
  maxBytes: 1 << 15,
  corpus: () => [small()],
  check(input) {
    let file: unknown
    try {
      file = JSON.parse(input.toString('utf8'))
    } catch {
      return 'no JSON'
    }
    try {
      const tokenizer = createTokenizer(file)
      const ids = tokenizer.encodeAsText('def load(path): return <|im_end|> 42')
      must(
        ids.every(id => Number.isInteger(id) && id >= 0 && id < tokenizer.vocab),
        'an id outside of the vocabulary',
      )
      return `read ${ids.length}`
    } catch (error) {
      must(error instanceof FatalError && error.code === 'E_TOKENIZER', `E_TOKENIZER was to be expected: ${(error as Error).stack}`)
      return outline(error.message)
    }
  },
}
export default target
