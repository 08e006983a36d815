import { type CheckpointFiles, type ModelSettings, readCheckpointFiles } from './checkpoint-files.js'
import { type Continuation, createContinuation } from './continuation.js'
import { type ChatMessage, createTemplate, renderIds } from './template.js'
import { createTokenizer, type Tokenizer } from './tokenizer.js'

/** A checkpoint's way with words: text to tokens and back, by its own tokenizer and template. */
export type Chat = {
  tokenizer: Tokenizer
  settings: ModelSettings
  maxPositions: number
  stopIds: number[]
  /** Ids up to and including the first assistant header. */
  open(messages: readonly ChatMessage[], tools: readonly unknown[] | null): number[]
  /** Ids after a turn's end-of-turn token, up to and including the next assistant header. */
  continue: Continuation
}

/** Loads the text side of a checkpoint directory. `thinking: false` switches Qwen3's thoughts off (other templates ignore it). */
export function loadChat(dir: string, { thinking }: { thinking: boolean }): Chat {
  return createChat(readCheckpointFiles(dir), { thinking })
}

export function createChat(files: CheckpointFiles, { thinking }: { thinking: boolean }): Chat {
  const tokenizer = createTokenizer(files.tokenizer, files.tokenizerConfig)
  const template = createTemplate(files.template, { ...tokenTexts(files.tokenizerConfig), enable_thinking: thinking })
  return {
    tokenizer,
    settings: files.settings,
    maxPositions: files.maxPositions,
    stopIds: files.stopIds,
    open: (messages, tools) => renderIds(template, tokenizer, messages, { tools, generationPrompt: true }),
    continue: createContinuation(template, tokenizer, files.stopIds),
  }
}

/** `bos_token`, `eos_token` … as templates name them; null where there is none. */
export function tokenTexts(config: Record<string, unknown>): Record<string, string> {
  const out: Record<string, string> = {}
  for (const name of ['bos_token', 'eos_token', 'pad_token', 'unk_token']) {
    const token = config[name]
    const text = typeof token === 'object' && token !== null ? (token as { content?: unknown }).content : token
    if (typeof text === 'string') out[name] = text
  }
  return out
}
