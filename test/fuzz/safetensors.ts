import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import { safetensorsCorpus, safetensorsWords } from './safetensors-inputs.js'
import { must, outline, type Target } from './target.js'

const dir = mkdtempSync(join(tmpdir(), 'cg-fuzz-'))
const file = join(dir, 'x.safetensors')
const engine = loadEngine()

/** Through the addon, as the trainer reads them: every file is read, values too, or refused with E_CHECKPOINT and its name. */
const target: Target = {
  name: 'safetensors',
  words: safetensorsWords,
  maxBytes: 1 << 16,
  corpus: safetensorsCorpus,
  check(input) {
    writeFileSync(file, input)
    try {
      const tensors = engine.readSafetensors(file).tensors
      for (const { shape, values } of tensors)
        must(shape.reduce((product, n) => product * n, 1) === values.length, 'a shape that does not fit the values')
      return `read ${tensors
        .map(({ dtype }) => dtype)
        .sort()
        .slice(0, 4)}`
    } catch (error) {
      const { code, message } = error as Error & { code?: string }
      must(code === 'E_CHECKPOINT', `E_CHECKPOINT was to be expected: ${code} ${message}`)
      return outline(message.replace(file, ''))
    }
  },
  close: () => rmSync(dir, { recursive: true, force: true }),
}
export default target
