import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { FatalError } from '../record/fault.js'

/** Limits and habits that a model's directory may state in its `cg.json`. */
const settings = z.strictObject({
  /** Prompt style that the model was made for. */
  prompt: z.enum(['full', 'brief']).optional(),
  /** Tokens of the whole context; never above the model's own positions. */
  context: z.number().int().positive().optional(),
  /** Generated tokens of one turn. */
  turn_tokens: z.number().int().positive().optional(),
  /** Code points of an issue. */
  issue_chars: z.number().int().positive().optional(),
})
export type ModelSettings = z.infer<typeof settings>

/** What a checkpoint directory says about text. */
export type CheckpointFiles = {
  tokenizer: unknown
  tokenizerConfig: Record<string, unknown>
  template: string
  /** Generation ends with one of these. */
  stopIds: number[]
  settings: ModelSettings
  /** Of config.json: positions the model knows. */
  maxPositions: number
}

/**
 * Reads tokenizer.json, the chat template (chat_template.jinja, else tokenizer_config.json), the end-of-turn ids (generation_config.json and config.json) and
 * cg.json of a Hugging Face checkpoint directory.
 *
 * Throws FatalError E_CHECKPOINT that names the file and what to do.
 */
export function readCheckpointFiles(dir: string): CheckpointFiles {
  const config = json(dir, 'config.json')
  const tokenizerConfig = json(dir, 'tokenizer_config.json', {})
  const generation = json(dir, 'generation_config.json', {})
  const parsed = settings.safeParse(json(dir, 'cg.json', {}))
  if (!parsed.success)
    throw problem(dir, 'cg.json', `${z.prettifyError(parsed.error).replaceAll('\n', ' ')}: correct it or remove the file`)
  const stopIds = [...new Set([generation.eos_token_id, config.eos_token_id].flat())].filter(id => typeof id === 'number')
  if (stopIds.length === 0) throw problem(dir, 'generation_config.json', 'names no eos_token_id: a turn would never end')
  return {
    tokenizer: json(dir, 'tokenizer.json'),
    tokenizerConfig,
    template: chatTemplate(dir, tokenizerConfig),
    stopIds,
    settings: parsed.data,
    maxPositions: typeof config.max_position_embeddings === 'number' ? config.max_position_embeddings : Number.MAX_SAFE_INTEGER,
  }
}

function chatTemplate(dir: string, config: Record<string, unknown>): string {
  const file = text(dir, 'chat_template.jinja')
  if (file !== undefined) return file
  const stated = config.chat_template
  if (typeof stated === 'string') return stated
  if (Array.isArray(stated)) {
    const named = stated as { name?: string; template?: string }[]
    const chosen = named.find(t => t.name === 'tool_use') ?? named.find(t => t.name === 'default') ?? named[0]
    if (typeof chosen?.template === 'string') return chosen.template
  }
  throw problem(
    dir,
    'tokenizer_config.json',
    'has no chat_template, and there is no chat_template.jinja: take the instruction-tuned checkpoint',
  )
}

function json(dir: string, name: string, missing?: Record<string, unknown>): Record<string, unknown> {
  const content = text(dir, name)
  if (content === undefined) {
    if (missing) return missing
    throw problem(dir, name, 'is not there: name a Hugging Face checkpoint directory')
  }
  try {
    return JSON.parse(content) as Record<string, unknown>
  } catch (error) {
    throw problem(dir, name, `is not JSON: ${(error as Error).message}`)
  }
}

function text(dir: string, name: string): string | undefined {
  try {
    return readFileSync(join(dir, name), 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw problem(dir, name, message)
  }
}

function problem(dir: string, name: string, what: string): FatalError {
  return new FatalError('E_CHECKPOINT', `${join(dir, name)}: ${what}`)
}
