import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StoredType } from '../engine/types.js'
import { canonical, sha256 } from '../record/canonical.js'
import { FatalError } from '../record/fault.js'
import { writing } from '../record/write-failure.js'

/** Files of a checkpoint directory beside its weights and config.json. */
const names =
  /^((generation_config|tokenizer|tokenizer_config|cg|special_tokens_map|added_tokens|vocab)\.json|chat_template\.jinja|merges\.txt|tokenizer\.model)$/

/** Where a new checkpoint's other files come from. */
export type Companions = {
  /** config.json. */
  config: string
  /** Directory of tokenizer, chat template and limits. */
  dir: string
}

export function companionFile(name: string): boolean {
  return names.test(name)
}

/** Copies them into an existing directory; config.json names the type that the weights are stored as. Throws FatalError E_CHECKPOINT, E_WRITE. */
export function copyCompanions(from: Companions, dtype: StoredType | undefined, to: string): void {
  for (const [name, content] of contents(from, dtype)) writing(join(to, name), () => writeFileSync(join(to, name), content))
}

/** sha256 of what decides a model that has not been taught: all files of its directory but the weights. */
export function companionsDigest(from: Companions): string {
  return sha256(canonical(contents(from, undefined).map(([name, content]) => [name, sha256(content)])))
}

function contents({ config, dir }: Companions, dtype: StoredType | undefined): [name: string, content: Buffer][] {
  if (!existsSync(join(dir, 'tokenizer.json')))
    throw new FatalError('E_CHECKPOINT', `${join(dir, 'tokenizer.json')} is not there: name a directory with a tokenizer by --model`)
  const others = readdirSync(dir).filter(companionFile).sort()
  return [
    ['config.json', stated(readFileSync(config), dtype)],
    ...others.map((name): [string, Buffer] => [name, readFileSync(join(dir, name))]),
  ]
}

/** config.json with another type, where another one was asked for. transformers reads both names of the field. */
function stated(config: Buffer, dtype: StoredType | undefined): Buffer {
  if (dtype === undefined) return config
  const parsed = JSON.parse(config.toString()) as Record<string, unknown>
  const name = 'dtype' in parsed ? 'dtype' : 'torch_dtype'
  const word = { fp32: 'float32', bf16: 'bfloat16', fp16: 'float16' }[dtype]
  if (parsed[name] === word) return config
  return Buffer.from(`${JSON.stringify({ ...parsed, [name]: word }, null, 2)}\n`)
}
