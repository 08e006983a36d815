/** A call of a scripted agent. */
export type ScriptedCall = { name: string; arguments: Record<string, string | number | boolean> }

/** Calls as a model writes them (protocol: a turn): one block after the other, JSON spaced `": "` and `", "`. */
export function callText(calls: readonly ScriptedCall[]): string {
  return calls.map(call => `<tool_call>\n${spacedJson({ name: call.name, arguments: call.arguments })}\n</tool_call>`).join('\n')
}

/** An answer as a model writes it (protocol: answer). */
export function answerText(files: readonly string[], ranges: readonly { path: string; start: number; end: number }[]): string {
  return `<answer>${spacedJson({ files, line_ranges: ranges.map(r => `${r.path}:${r.start}-${r.end}`) })}</answer>`
}

/** JSON as Python's `json.dumps(value, ensure_ascii=False)` spells it. */
export function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`)
    .join(', ')}}`
}
