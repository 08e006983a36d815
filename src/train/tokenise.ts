import { type Chat, loadChat, tokenTexts } from '../model/chat.js'
import { readCheckpointFiles } from '../model/checkpoint-files.js'
import { protocol } from '../model/protocol.js'
import { type ChatMessage, createTemplate } from '../model/template.js'
import type { Tokenizer } from '../model/tokenizer.js'
import { FatalError, RecordFault } from '../record/fault.js'
import type { Rollout, Tokens } from '../record/schema.js'
import { codegrep } from '../tools/codegrep.js'

/** A text-only rollout as the tokens that a native one of this model would have. `cut`: it went on where the model's context ends. */
export type Tokenise = (record: Rollout) => Pick<Tokens, 'ids' | 'spans'> & { cut: boolean }

/**
 * Makes the function that gives text-only rollouts tokens (the tokenizer is loaded when the first one comes): the opening and what follows each turn through the model's own chat template, each turn's text with
 * its end-of-turn token as a span of its own (protocol; stream contract, "Tokens").
 *
 * @param prompt style of the opening; undefined: the model's own (cg.json), else the one that the rollout was asked in
 */
export function createTokenise(modelDir: string, prompt: 'full' | 'brief' | undefined): Tokenise {
  let loaded: Words | undefined
  return record => {
    loaded ??= load(modelDir)
    const { chat, end, context } = loaded
    const { sampling, turns } = record
    const style = prompt ?? chat.settings.prompt ?? styleOf(record)
    const words = protocol(style, { maxTurns: sampling.max_turns, maxCalls: sampling.max_calls })
    const tools = words.toolsBlock ? toolSchemas(record) : null
    const issueChars = chat.settings.issue_chars ?? numberOf(sampling.issue_chars) ?? 16_000
    const ids = chat.open(words.open(record, issueChars), tools)
    const spans: [number, number, number][] = []
    for (const [turn, { text, calls, stop }] of turns.entries()) {
      const written = chat.tokenizer.encode(text)
      if (stop === 'stop') written.push(end)
      const start = ids.length
      if (start + written.length > context) return { ids, spans, cut: true }
      for (const id of written) ids.push(id)
      if (written.length > 0) spans.push([start, ids.length, turn])
      if (turn === turns.length - 1) break
      const results = chat.continue(calls.map(call => call.observation ?? ''))
      if (ids.length + results.length >= context) return { ids, spans, cut: true } // a native rollout ends here, too
      for (const id of results) ids.push(id)
    }
    return { ids, spans, cut: false }
  }
}

type Words = { chat: Chat; end: number; context: number }

function load(modelDir: string): Words {
  const chat = loadChat(modelDir, { thinking: false })
  const context = Math.min(chat.settings.context ?? Number.POSITIVE_INFINITY, chat.maxPositions)
  return { chat, end: endOfTurn(modelDir, chat.tokenizer, chat.stopIds), context }
}

function styleOf({ protocol: { name } }: Rollout): 'full' | 'brief' {
  return name === 'brief' ? 'brief' : 'full'
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function toolSchemas(record: Rollout): unknown[] {
  const { name: known, tools } = codegrep()
  if (record.toolset !== known)
    throw new RecordFault(
      'E_TOOLSET',
      `rollout ${record.id} used toolset ${record.toolset}, whose schemas this cg does not know: use --prompt brief`,
    )
  return tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }))
}

/** The token that the template puts behind a turn, and the model therefore learns to write. */
function endOfTurn(dir: string, tokenizer: Tokenizer, stopIds: readonly number[]): number {
  const files = readCheckpointFiles(dir)
  const template = createTemplate(files.template, { ...tokenTexts(files.tokenizerConfig), enable_thinking: false })
  const said = 'ANSWERED'
  const messages: ChatMessage[] = [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'U' },
    { role: 'assistant', content: said },
  ]
  const text = template.render(messages, { tools: null, generationPrompt: false })
  const behind = text.slice(text.indexOf(said) + said.length)
  for (const [literal, id] of tokenizer.added) if (stopIds.includes(id) && behind.startsWith(literal)) return id
  throw new FatalError('E_TEMPLATE', `${dir}: its chat template ends turns with none of its end-of-turn tokens (eos_token_id)`)
}
