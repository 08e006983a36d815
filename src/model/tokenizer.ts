import { Tokenizer as Library } from '@huggingface/tokenizers'
import { FatalError } from '../record/fault.js'

/** A byte-level tokenizer as tokenizer.json describes it. Ids are non-negative; texts are normalised as the file says (Qwen: NFC). */
export type Tokenizer = {
  /** Added tokens (`<|im_end|>`, `<tool_call>` …) by their text. */
  added: ReadonlyMap<string, number>
  /** Rows of the embedding that mean something: 1 + the highest id. */
  vocab: number
  /** Text that is ours: an added token's text becomes its id. */
  encode(text: string): number[]
  /** Text that is not ours: never yields an added token, whatever it spells. */
  encodeAsText(text: string): number[]
  /** The text of ids, added tokens included. Bytes that are no UTF-8 come out as U+FFFD. */
  decode(ids: ArrayLike<number>): string
}

type TokenizerFile = { added_tokens?: { id: number; content: string }[]; model: { vocab: Record<string, number> | [string, number][] } }

/**
 * Builds a tokenizer from parsed tokenizer.json and tokenizer_config.json (format: Hugging Face tokenizers 0.x).
 *
 * No beginning- or end-of-sequence token is added to anything. Throws FatalError E_TOKENIZER for a file that the library cannot use.
 */
export function createTokenizer(file: unknown, config: object = {}): Tokenizer {
  const json = file as TokenizerFile
  let full: InstanceType<typeof Library>
  let bare: InstanceType<typeof Library>
  try {
    full = new Library(json, config)
    bare = new Library({ ...json, added_tokens: [], model: emptied(json.model) }, config)
  } catch (error) {
    throw new FatalError('E_TOKENIZER', `tokenizer.json cannot be used: ${(error as Error).message}`)
  }
  bare.model = full.model // the vocabulary is the big part: one copy serves both
  const added = new Map((json.added_tokens ?? []).map(token => [token.content, token.id]))
  const addedIds = new Set(added.values())
  const vocab = 1 + highestId(json)

  /** Ids of a text. The library takes files whose parts do not fit one another, and gives `undefined` or throws when it comes to encoding. */
  function encode(library: typeof full, text: string): number[] {
    let ids: number[]
    try {
      ids = library.encode(text, { add_special_tokens: false }).ids
    } catch (error) {
      throw new FatalError('E_TOKENIZER', `tokenizer.json cannot encode text: ${(error as Error).message}`)
    }
    const wrong = ids.find(id => !Number.isInteger(id) || id < 0 || id >= vocab)
    if (wrong !== undefined || ids.includes(undefined as unknown as number))
      throw new FatalError(
        'E_TOKENIZER',
        `tokenizer.json gives a piece of text the id ${wrong}: its vocabulary, merges and unknown token do not fit`,
      )
    return ids
  }

  return {
    added,
    vocab,
    encode: text => (text === '' ? [] : encode(full, text)),
    encodeAsText(text) {
      if (text === '') return []
      const ids = encode(bare, text)
      if (ids.some(id => addedIds.has(id)))
        throw new FatalError('E_TOKENIZER', 'plain text was encoded to an added token: this tokenizer cannot keep foreign text apart')
      return ids
    },
    decode(ids) {
      if (ids.length === 0) return ''
      return full.decode(Array.from(ids), { skip_special_tokens: false, clean_up_tokenization_spaces: false })
    },
  }
}

/** The same kind of model without entries: cheap to build, and replaced at once. */
function emptied(model: TokenizerFile['model']): object {
  const { vocab } = model
  return { ...model, vocab: Array.isArray(vocab) ? vocab.slice(0, 1) : Object.fromEntries(Object.entries(vocab).slice(0, 1)), merges: [] }
}

function highestId({ model, added_tokens }: TokenizerFile): number {
  let highest = -1
  const ids: number[] = Array.isArray(model.vocab) ? [model.vocab.length - 1] : Object.values(model.vocab)
  for (const id of ids) if (id > highest) highest = id
  for (const { id } of added_tokens ?? []) if (id > highest) highest = id
  return highest
}
