import { visibleText } from './visible-text.js'

/** A tool call as the model wrote it. `bad`: not JSON, or JSON that names no tool. */
export type ParsedCall = { bad: false; name: string; arguments: unknown } | { bad: true; text: string }

/**
 * The calls of a turn, in order: every `<tool_call>{"name": …, "arguments": {…}}</tool_call>` (protocol: a turn). A last block without its closing tag counts.
 *
 * Thoughts hold no calls. `parameters` is read as `arguments`; arguments that are a string with a JSON object are that object. Arguments that no record
 * can hold, nested too deeply or with a number beyond float64, make a bad call. Never throws.
 */
export function parseCalls(turn: string): ParsedCall[] {
  return Array.from(visibleText(turn).matchAll(/<tool_call>([\s\S]*?)(?:<\/tool_call>|$)/g), match => parseCall(match[1]!.trim()))
}

function parseCall(text: string): ParsedCall {
  const call = json(text)
  if (!isObject(call) || typeof call.name !== 'string') return { bad: true, text }
  const given = call.arguments ?? call.parameters ?? {}
  const inner = typeof given === 'string' ? json(given) : given
  const args = isObject(inner) ? inner : given
  return !fits(args, maxDepth) ? { bad: true, text } : { bad: false, name: call.name, arguments: args }
}

/** As deep as the lenient reader goes; no tool takes more than one level. */
const maxDepth = 100

function fits(value: unknown, levels: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(inner => fits(inner, levels - 1))
}

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
