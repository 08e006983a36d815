import { readFileSync } from 'node:fs'
import { readCheckpointFiles } from '#cg/model/checkpoint-files.js'
import { createTokenizer } from '#cg/model/tokenizer.js'
import { must, type Target } from './target.js'

const { tokenizer: file, tokenizerConfig } = readCheckpointFiles('fixtures/model')
const tokenizer = createTokenizer(file, tokenizerConfig)
const added = new Set(tokenizer.added.values())

/** Any text: its tokens are of the vocabulary, give the text back (as the file normalises it: NFC), and are never an added token unless the text is ours. */
const target: Target = {
  name: 'tokenizer',
  words: [
    ...tokenizer.added.keys(),
    '\u0301',
    '\u212b',
    '\ufb01',
    '\ud55c',
    '\u1112\u1161',
    '\u{1f469}\u200d\u{1f680}',
    '\ufffd',
    '\r\n',
    "'ll",
    '    ',
    '_',
    '\u0000',
    '1234567890',
  ],
  maxBytes: 1 << 14,
  corpus: () =>
    ['src/model/tokenizer.ts', 'README.md', 'fixtures/model/chat_template.jinja'].map(name => readFileSync(name).subarray(0, 4000)),
  check(input) {
    const text = input.toString('utf8')
    const plain = tokenizer.encodeAsText(text)
    const ours = tokenizer.encode(text)
    for (const ids of [plain, ours]) {
      must(
        ids.every(id => Number.isInteger(id) && id >= 0 && id < tokenizer.vocab),
        'an id outside of the vocabulary',
      )
      must(tokenizer.decode(ids) === text.normalize('NFC'), 'the tokens do not give the text back')
    }
    must(!plain.some(id => added.has(id)), 'foreign text became an added token')
    return `${Math.round(Math.log2(plain.length + 1))} ${ours.filter(id => added.has(id)).length}`
  },
}
export default target
