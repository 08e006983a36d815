import type { ScriptedCall } from './call-text.js'
import type { Clue } from './lexical-clues.js'

/** A call and the clue that it follows. */
export type Search = { call: ScriptedCall; clue: Clue }

/** Calls of the first turn: what the issue names, where it must be defined or written; patterns are copied from the issue. At most `limit`. */
export function firstSearches(clues: readonly Clue[], limit: number): Search[] {
  const out = searches(limit)
  const of = <K extends Clue['kind']>(kind: K) => clues.filter((c): c is Extract<Clue, { kind: K }> => c.kind === kind)
  for (const frame of of('frame').slice(0, 2)) if (isName(frame.name)) out.grep(frame, `def ${frame.name}`)
  for (const frame of of('frame').slice(0, 1))
    out.add(frame, 'read', { path: frame.path, start: Math.max(1, frame.line - 10), end: frame.line + 5 })
  for (const clue of clues.filter(c => c.kind !== 'frame' && c.kind !== 'word').slice(0, 6)) follow(out, clue)
  if (out.list.length === 0) wordSearches(out, of('word').slice(0, 6))
  return out.list
}

/** Calls of the second turn, when the first found nothing to rely on: the same clues less strictly, then the words of the issue. */
export function secondSearches(clues: readonly Clue[], made: ReadonlySet<string>, limit: number): Search[] {
  const out = searches(limit, made)
  for (const clue of clues.slice(0, 8)) {
    if (clue.kind === 'name') out.grep(clue, clue.text)
    else if (clue.kind === 'message')
      for (const word of clue.text
        .split(' ')
        .filter(w => w.length > 5)
        .slice(0, 1))
        out.grep(clue, word)
    else if (clue.kind === 'module') out.add(clue, 'glob', { pattern: `**/*${clue.text.split('/').at(-1)!}*/*.py` })
  }
  wordSearches(out, clues.filter(c => c.kind === 'word').slice(0, 6))
  return out.list
}

function follow(out: Searches, clue: Clue): void {
  if (clue.kind === 'message') out.grep(clue, clue.text)
  else if (clue.kind === 'module') out.add(clue, 'glob', { pattern: `**/${clue.text}.py` })
  else if (clue.kind === 'name') {
    if (clue.form === 'function') out.grep(clue, `def ${clue.text}`)
    else if (clue.form === 'class') out.grep(clue, `class ${clue.text}`)
    else if (clue.form === 'constant') out.grep(clue, `${clue.text} =`)
    else out.grep(clue, clue.text)
  }
}

function wordSearches(out: Searches, words: readonly Clue[]): void {
  for (const clue of words) {
    if (clue.kind !== 'word') continue
    out.add(clue, 'grep', { pattern: clue.text, glob: '*.py' })
  }
  for (const clue of words.slice(0, 3)) if (clue.kind === 'word') out.add(clue, 'glob', { pattern: `**/*${clue.text}*.py` })
}

const isName = (name: string) => /^[A-Za-z_]\w*$/.test(name) && !/^__\w+__$/.test(name)

type Searches = {
  readonly list: Search[]
  grep(clue: Clue, pattern: string): void
  add(clue: Clue, name: string, args: ScriptedCall['arguments']): void
}

/** Gathers searches, each once and none that was `made` before, up to a limit. */
function searches(limit: number, made: ReadonlySet<string> = new Set()): Searches {
  const seen = new Set(made)
  const list: Search[] = []
  const add: Searches['add'] = (clue, name, args) => {
    const key = searchKey({ name, arguments: args })
    if (list.length >= limit || seen.has(key)) return
    seen.add(key)
    list.push({ call: { name, arguments: args }, clue })
  }
  return { list, add, grep: (clue, pattern) => add(clue, 'grep', { pattern }) }
}

/** Two calls with the same key find the same. */
export function searchKey(call: { name: string; arguments: unknown }): string {
  return JSON.stringify([call.name, call.arguments])
}
