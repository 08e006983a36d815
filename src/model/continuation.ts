import { FatalError } from '../record/fault.js'
import { type ChatMessage, type ChatTemplate, encodeGuarded, guardedText } from './template.js'
import type { Tokenizer } from './tokenizer.js'

/** Ids that follow a turn's end-of-turn token: tool results, one message each, and the next assistant header. */
export type Continuation = (results: readonly string[]) => number[]

const question: ChatMessage[] = [
  { role: 'system', content: 'S' },
  { role: 'user', content: 'U' },
]
const answer = 'ANSWERED'

/**
 * How a template goes on after a turn, found from a dummy conversation and cut right after the end-of-turn token that the model itself writes; the newline
 * that templates put behind that token therefore belongs to the continuation, and nobody samples it.
 *
 * Conversations grow by appending, so the template must keep what it has rendered. Throws FatalError E_TEMPLATE for one that does not (it drops or
 * rewrites earlier turns, or heads the next turn otherwise than the first).
 */
export function createContinuation(template: ChatTemplate, tokenizer: Tokenizer, stopIds: readonly number[]): Continuation {
  const ends = [...tokenizer.added].filter(([, id]) => stopIds.includes(id)).map(([literal]) => literal)
  const render = (messages: ChatMessage[], generationPrompt: boolean) => template.render(messages, { tools: null, generationPrompt })
  const once: ChatMessage[] = [...question, { role: 'assistant', content: answer }, { role: 'tool', content: 'R' }]
  const twice: ChatMessage[] = [...once, { role: 'assistant', content: answer }, { role: 'tool', content: 'R' }]

  const asked = render(question, false)
  const header = render(question, true).slice(asked.length)
  const grown = render(once, true)
  const again = render(twice, true)
  const kept =
    render(question, true).startsWith(asked) && grown.startsWith(asked) && grown.endsWith(header) && again.startsWith(render(once, false))
  const at = grown.indexOf(answer, asked.length) + answer.length
  const end = ends.find(literal => grown.startsWith(literal, at))
  if (!kept || end === undefined || grown.indexOf(answer, asked.length) < 0)
    throw new FatalError(
      'E_TEMPLATE',
      'the chat template does not keep its prefix: a conversation rendered with one more turn must begin with the same text, ' +
        'and a turn must end with an end-of-turn token; use a template that does (or one made for training)',
    )
  const cut = at + end.length

  return results => {
    const messages: ChatMessage[] = [...once.slice(0, 3), ...results.map((content): ChatMessage => ({ role: 'tool', content }))]
    const { text, mark } = guardedText(template, tokenizer, messages, { tools: null, generationPrompt: true })
    if (text.slice(0, cut) !== grown.slice(0, cut))
      throw new FatalError('E_TEMPLATE', 'the chat template rewrites earlier turns depending on tool results: it does not keep its prefix')
    return encodeGuarded(tokenizer, { text: text.slice(cut), mark })
  }
}
