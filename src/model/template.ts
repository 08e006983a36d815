import { Environment, Interpreter, Template } from '@huggingface/jinja'
import { FatalError } from '../record/fault.js'
import { usePythonStrip } from './python-strings.js'
import type { Tokenizer } from './tokenizer.js'

export type ChatMessage = { role: 'system' | 'user' | 'assistant' | 'tool'; content: string; [field: string]: unknown }

/** What a template may see beside the messages: `enable_thinking`, `date_string` …; the beginning- and end-of-sequence texts too. */
export type TemplateArguments = Record<string, unknown>

export type RenderOptions = {
  /** JSON schemas in the form chat templates take; null: no tools block. */
  tools: readonly unknown[] | null
  generationPrompt: boolean
}

/** The checkpoint's own chat template (Jinja). */
export type ChatTemplate = {
  /** Throws FatalError E_TEMPLATE with the template's own message where it refuses the messages. */
  render(messages: readonly ChatMessage[], options: RenderOptions): string
}

/**
 * Compiles a template.
 *
 * Templates that ask for today's date get `date`: a prompt must not depend on the day. Differences to the reference renderer that the library has
 * (`strip` with an argument) are mended; see `usePythonStrip`.
 */
export function createTemplate(source: string, args: TemplateArguments = {}, date = '26 Jul 2024'): ChatTemplate {
  usePythonStrip()
  let program: Template['parsed']
  try {
    program = new Template(source).parsed
  } catch (error) {
    throw new FatalError('E_TEMPLATE', `the chat template cannot be read: ${(error as Error).message}`)
  }
  return {
    render(messages, { tools, generationPrompt }) {
      const env = new Environment()
      const values: TemplateArguments = {
        ...globals(date),
        date_string: date,
        ...args,
        messages,
        tools,
        add_generation_prompt: generationPrompt,
      }
      for (const [name, value] of Object.entries(values)) env.set(name, value)
      try {
        return (new Interpreter(env).run(program) as { value: string }).value
      } catch (error) {
        throw new FatalError('E_TEMPLATE', `the chat template refuses this conversation: ${(error as Error).message}`)
      }
    },
  }
}

function globals(date: string): TemplateArguments {
  const constants = { true: true, false: false, none: null, True: true, False: false, None: null }
  const raise = (message: string) => {
    throw new Error(message)
  }
  return { ...constants, range, raise_exception: raise, strftime_now: () => date }
}

function range(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined ? [0, start] : [start, stop]
  const out: number[] = []
  for (let i = from; step > 0 ? i < to : i > to; i += step) out.push(i)
  return out
}

/**
 * Ids of a rendered conversation in which system, user and tool contents can spell no added token (golden chat: `ids_text_guarded`).
 *
 * Text between the template's own added tokens is encoded as one piece, so that a template's `>` may merge with the content's newline as it does in plain text.
 */
export function renderIds(
  template: ChatTemplate,
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  options: RenderOptions,
): number[] {
  return encodeGuarded(tokenizer, guardedText(template, tokenizer, messages, options))
}

/** Rendered text in which every added-token literal of foreign content is broken by `mark`. */
export type GuardedText = { text: string; mark: string }

export function guardedText(
  template: ChatTemplate,
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  options: RenderOptions,
): GuardedText {
  const plain = template.render(messages, options)
  const mark = unusedCharacter(plain)
  const literals = addedPattern(tokenizer)
  const broken = (content: string) => content.replace(literals, literal => literal[0] + mark + literal.slice(1))
  const foreign = messages.filter(m => m.role !== 'assistant' && m.content.search(literals) >= 0)
  if (foreign.length === 0) return { text: plain, mark }

  const marked = messages.map(m => (foreign.includes(m) ? { ...m, content: broken(m.content) } : m))
  const text = template.render(marked, options)
  if (text.replaceAll(mark, '') === plain) return { text, mark }

  // The template looks into contents (Qwen3: does a user message look like a tool response?): mark the plain rendering instead.
  let out = plain
  let at = 0
  for (const { content } of foreign) {
    const found = [content, content.trim()].find(c => out.indexOf(c, at) >= 0)
    if (found === undefined)
      throw new FatalError('E_TEMPLATE', 'the chat template rewrites message contents: foreign text cannot be kept apart from its tokens')
    const begin = out.indexOf(found, at)
    const safe = broken(found)
    out = out.slice(0, begin) + safe + out.slice(begin + found.length)
    at = begin + safe.length
  }
  return { text: out, mark }
}

/** Encodes guarded text: unbroken added-token literals become their ids, the rest is plain text without the marks. */
export function encodeGuarded(tokenizer: Tokenizer, { text, mark }: GuardedText): number[] {
  const ids: number[] = []
  let at = 0
  const plain = (piece: string) => {
    for (const id of tokenizer.encodeAsText(piece.replaceAll(mark, ''))) ids.push(id)
  }
  for (const match of text.matchAll(addedPattern(tokenizer))) {
    plain(text.slice(at, match.index))
    ids.push(tokenizer.added.get(match[0])!)
    at = match.index + match[0].length
  }
  plain(text.slice(at))
  return ids
}

const patterns = new WeakMap<Tokenizer, RegExp>()

/** Any added token's text, the longest first. */
function addedPattern(tokenizer: Tokenizer): RegExp {
  let pattern = patterns.get(tokenizer)
  if (!pattern) {
    const literals = [...tokenizer.added.keys()].filter(Boolean).sort((a, b) => b.length - a.length)
    pattern = new RegExp(literals.map(literal => literal.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|') || '(?!)', 'g')
    patterns.set(tokenizer, pattern)
  }
  return pattern
}

function unusedCharacter(text: string): string {
  for (let code = 0xe0ff; code <= 0xf8ff; code++) if (!text.includes(String.fromCharCode(code))) return String.fromCharCode(code)
  throw new FatalError('E_TEMPLATE', 'the conversation uses every private character: there is none left to mark foreign text')
}
