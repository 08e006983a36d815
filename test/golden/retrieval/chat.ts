import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { tokenTexts } from '#cg/model/chat.js'
import { createContinuation } from '#cg/model/continuation.js'
import { type ChatMessage, createTemplate, renderIds } from '#cg/model/template.js'
import { createTokenizer, type Tokenizer } from '#cg/model/tokenizer.js'
import type { GoldenKind, GoldenResult } from '../kind.js'
import { goldenFile } from './files.js'
import { worst } from './worst.js'

type About = { package: string; vocab_size_with_added?: number }
type Text = { tokenizer: Tokenizer; config: Record<string, unknown>; template: string }
type Case<T> = { name: string; about: About; tools: unknown[] | null; value: T }

const loaded = new Map<string, Text | undefined>()

/** A family's tokenizer and template: a directory of this repository, $CG_GOLDEN_TOKENIZERS (packages by name, with or without scope), or node_modules. */
function textOf(name: string): Text | undefined {
  if (loaded.has(name)) return loaded.get(name)
  const given = process.env.CG_GOLDEN_TOKENIZERS
  const places = [resolve(name), ...(given ? [join(given, name), join(given, basename(name))] : []), resolve('node_modules', name)]
  const dir = places.flatMap(place => [place, join(place, 'models')]).find(place => existsSync(join(place, 'tokenizer.json')))
  const read = (file: string) => JSON.parse(readFileSync(join(dir!, file), 'utf8')) as Record<string, unknown>
  const config = dir === undefined ? {} : read('tokenizer_config.json')
  const text =
    dir === undefined
      ? undefined
      : { tokenizer: createTokenizer(read('tokenizer.json'), config), config, template: String(config.chat_template) }
  loaded.set(name, text)
  return text
}

function kind<T>(
  file: string,
  label: (value: T) => string,
  check: (text: Text, c: Case<T>, seen: ReturnType<typeof worst>) => void,
): GoldenKind<Case<T>> {
  return {
    name: `chat/${file}`,
    find(dir) {
      if (!existsSync(join(dir, 'chat'))) return []
      return readdirSync(join(dir, 'chat')).flatMap(family => {
        const data = goldenFile<About & { TOOLS?: unknown[]; cases: T[] }>(dir, 'chat', family, `${file}.json`)
        return (data?.cases ?? []).map(value => ({ name: `${family} ${label(value)}`, about: data!, tools: data!.TOOLS ?? null, value }))
      })
    },
    run(c): GoldenResult {
      const text = textOf(c.about.package)
      if (!text) return { status: 'not built', message: `tokenizer ${c.about.package} not found: set CG_GOLDEN_TOKENIZERS` }
      const seen = worst(0)
      check(text, c, seen)
      return seen.result()
    },
  }
}

type Encoded = { text: string; ids: number[]; decoded?: string }
const encode = kind<Encoded>(
  'encode',
  ({ text }) => JSON.stringify(text.slice(0, 40)),
  ({ tokenizer }, { value, about }, seen) => {
    seen.same('ids', tokenizer.encode(value.text), value.ids)
    seen.same('decoded', tokenizer.decode(value.ids), value.decoded ?? value.text)
    seen.same('vocabulary', tokenizer.vocab, about.vocab_size_with_added)
  },
)

type Injected = { text: string; allow: number[]; as_text: number[] }
const injection = kind<Injected>(
  'injection',
  ({ text }) => JSON.stringify(text.slice(0, 40)),
  ({ tokenizer }, { value }, seen) => {
    seen.same('our text', tokenizer.encode(value.text), value.allow)
    seen.same('foreign text', tokenizer.encodeAsText(value.text), value.as_text)
  },
)

type Rendered = { text: string; ids: number[]; ids_text_guarded?: number[] }
type Conversation = {
  name: string
  tools: string | null
  template_kwargs: Record<string, unknown>
  messages: ChatMessage[]
  template_error?: string
  generation_prompt?: Rendered
  no_generation_prompt?: Rendered
}
const conversations = kind<Conversation>(
  'conversations',
  c => `${c.name} ${JSON.stringify(c.template_kwargs)}`,
  ({ tokenizer, config, template: source }, { value, tools: given }, seen) => {
    const template = createTemplate(source, { ...tokenTexts(config), ...value.template_kwargs })
    const tools = value.tools ? given : null
    for (const generationPrompt of [true, false]) {
      const expected = generationPrompt ? value.generation_prompt : value.no_generation_prompt
      let text: string
      try {
        text = template.render(value.messages, { tools, generationPrompt })
      } catch {
        seen.same('refused', true, value.template_error !== undefined)
        continue
      }
      if (!expected) {
        seen.same('rendered', text, value.template_error ?? 'a refusal')
        continue
      }
      seen.same('text', text, expected.text)
      seen.same('ids', tokenizer.encode(text), expected.ids)
      seen.same(
        'guarded ids',
        renderIds(template, tokenizer, value.messages, { tools, generationPrompt }),
        expected.ids_text_guarded ?? expected.ids,
      )
    }
  },
)

type Continued = {
  name: string
  tools: string | null
  template_kwargs: Record<string, unknown>
  prompt_messages: ChatMessage[]
  prompt_ids: number[]
  turns: {
    sampled_text: string
    sampled_ids: number[]
    results?: string[]
    continuation_ids: number[] | null
    continuation_ids_text_guarded?: number[]
    length_after: number
  }[]
  whole_ids: number[]
  whole_ids_text_guarded?: number[]
}
/** Conversations of tool turns. A later question of the user is no part of a rollout: such a case is followed up to there. */
const continuation = kind<Continued>(
  'continuation',
  c => c.name,
  ({ tokenizer, config, template: source }, { value, tools: given }, seen) => {
    const template = createTemplate(source, { ...tokenTexts(config), ...value.template_kwargs })
    const end = tokenizer.added.get('<|im_end|>')!
    const more = createContinuation(template, tokenizer, [end])
    const ids = renderIds(template, tokenizer, value.prompt_messages, { tools: value.tools ? given : null, generationPrompt: true })
    const whole = value.whole_ids_text_guarded ?? value.whole_ids
    seen.same('prompt', ids, whole.slice(0, ids.length))
    for (const turn of value.turns) {
      const sampled = turn.sampled_ids
      seen.same('sampled text', tokenizer.decode(sampled.slice(0, -1)), turn.sampled_text)
      ids.push(...sampled)
      if (!turn.results) break
      const appended = more(turn.results)
      seen.same('appended', appended, turn.continuation_ids_text_guarded ?? turn.continuation_ids)
      ids.push(...appended)
    }
    seen.same('whole', ids, whole.slice(0, ids.length))
  },
)

export const kinds: GoldenKind[] = [encode, injection, conversations, continuation] as GoldenKind[]
