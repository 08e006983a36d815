import type { ScriptedCall } from './call-text.js'
import type { Seen } from './lexical-answers.js'
import type { Clue } from './lexical-clues.js'
import type { Draws } from './lexical-draws.js'
import type { Search } from './lexical-search.js'
import { commonWords } from './lexical-words.js'

/**
 * Ways to search for what an issue speaks of, the promising ones first: for every clue one of several patterns, then other patterns of the same clues, names
 * that neighbouring words of the text would make, and the words themselves. All are copied or joined from the issue.
 */
export function searchVariants(text: string, clues: readonly Clue[], draw: Draws): ScriptedCall[] {
  const named = clues.filter(clue => clue.kind !== 'word')
  const joined = joinedNames(text)
  const words = clues.filter(clue => clue.kind === 'word').map(clue => clue.text)
  const first = nearlyInOrder(named, draw)
    .slice(0, 6)
    .map(clue => variant(clue, draw))
  const again = named.slice(0, 4).flatMap(clue => [variant(clue, draw), ...parts(clue, draw)])
  const prose = [
    ...(draw.chance(0.5) ? loneLines(text) : []).map(words => grep(words, draw)),
    ...nearlyInOrder(joined, draw)
      .slice(0, 10)
      .map(name => grep(nameInProse(name, draw), draw)),
    ...nearlyInOrder(words, draw)
      .slice(0, 4)
      .map(word => (draw.chance(0.6) ? grep(word, draw, 0.5) : glob(`**/*${word}*.py`))),
  ]
  const rest = named.length > 0 ? [...draw.shuffled(again), ...prose] : [...mostlyInOrder(prose, draw)]
  return distinct([...first, ...rest])
}

/** Lines that stand alone and may be a message that nobody put in quotes: their longest run of words without a value, at most five words. */
function loneLines(text: string): string[] {
  return text
    .split(/\n{2,}/)
    .filter(part => !part.includes('\n') && part.length < 100 && !/[.?!:]$/.test(part.trim()))
    .map(line =>
      line
        .split(/(?:'[^']*'|"[^"]*"|\S*[\d`=/\\<>()[\]]\S*|[:;,]+(?=\s|$))/)
        .toSorted((a, b) => b.length - a.length)[0]!
        .trim(),
    )
    .filter(run => /^[\w' -]+$/.test(run) && /\w+ \w+ \w+/.test(run))
    .map(run => run.split(/\s+/).slice(0, 5).join(' '))
    .slice(0, 2)
}

/** The list with neighbours now and then swapped. */
function nearlyInOrder<T>(list: readonly T[], draw: Draws): T[] {
  const out = [...list]
  for (let i = 0; i + 1 < out.length; i++)
    if (draw.chance(0.25)) {
      const kept = out[i]!
      out[i] = out[i + 1]!
      out[i + 1] = kept
    }
  return out
}

function mostlyInOrder(list: readonly ScriptedCall[], draw: Draws): ScriptedCall[] {
  return draw.chance(0.5) ? draw.shuffled(list) : [...list]
}

function variant(clue: Clue, draw: Draws): ScriptedCall {
  switch (clue.kind) {
    case 'frame': {
      const around = { path: clue.path, start: Math.max(1, clue.line - draw.pick([3, 5, 10])), end: clue.line + draw.pick([5, 8]) }
      return !/^[A-Za-z]\w+$/.test(clue.name) || draw.chance(0.3)
        ? { name: 'read', arguments: around }
        : grep(draw.pick([`def ${clue.name}`, `def ${clue.name}`, clue.name]), draw)
    }
    case 'name': {
      const { text, form } = clue
      if (form === 'class') return grep(draw.pick([`class ${text}`, `class ${text}`, text]), draw)
      if (form === 'constant') return grep(draw.pick([`${text} =`, text]), draw)
      return grep(draw.pick(form === 'function' ? [`def ${text}`, `def ${text}`, text, `${text}\\(`] : [text, text, `def ${text}`]), draw)
    }
    case 'message':
      return grep(draw.chance(0.7) ? clue.text : clue.text.split(' ').slice(0, 3).join(' '), draw)
    case 'module': {
      const last = clue.text.split('/').at(-1)!
      return glob(draw.pick([`**/${clue.text}.py`, `**/${last}.py`, `**/*${last}*.py`]))
    }
    case 'word':
      return grep(clue.text, draw)
  }
}

/** Less than the whole of a clue: a part of a name, a folder of its words. */
function parts(clue: Clue, draw: Draws): ScriptedCall[] {
  if (clue.kind === 'message')
    return clue.text
      .split(' ')
      .filter(word => word.length > 4 && !commonWords.has(word))
      .slice(0, 1)
      .map(word => grep(word, draw))
  if (clue.kind !== 'name') return []
  const words = clue.text.match(/[A-Z]?[a-z]{3,}/g) ?? []
  return words.length === 0 ? [] : [glob(`**/*${draw.pick(words).toLowerCase()}*.py`), grep(draw.pick(words), draw, 0.4)]
}

function grep(pattern: string, draw: Draws, restricted = 0.1): ScriptedCall {
  return { name: 'grep', arguments: draw.chance(restricted) ? { pattern, glob: '*.py' } : { pattern } }
}

const glob = (pattern: string): ScriptedCall => ({ name: 'glob', arguments: { pattern } })

/** Verbs that begin names although they say nothing in prose. */
const namingVerbs = new Set(
  'read write send set start stop open order take make get add close run print check clear build reset show support change return report test'.split(
    ' ',
  ),
)

/** Names that the sentences may stand for: neighbouring words joined, articles left out, plurals and -ing undone, `b of the a` turned round. Longer ones first. */
export function joinedNames(text: string): string[] {
  const pairs: string[] = []
  const triples: string[] = []
  for (const clause of text
    .toLowerCase()
    .replace(/`[^`]*`/g, '|')
    .split(/[^a-z\s'-]+|\n{2,}/)) {
    const words = clause.split(/[\s-]+/).filter(word => /^[a-z]+$/.test(word) && !/^(?:the|a|an|our|my|its|their|this|that)$/.test(word))
    words.forEach((word, i) => {
      const next = words[i + 1]
      if (next === undefined || !speaks(word, true)) return
      if (next === 'of' && words[i + 2] !== undefined && speaks(words[i + 2]!, false)) pairs.push(`${base(words[i + 2]!)}_${base(word)}`)
      if (next === 'to' && words[i + 2] !== undefined && speaks(words[i + 2]!, false))
        triples.push(`${base(word)}_to_${base(words[i + 2]!)}`)
      if (!speaks(next, false)) return
      pairs.push(`${base(word)}_${base(next)}`)
      const third = words[i + 2]
      if (third !== undefined && speaks(third, false)) triples.push(`${base(word)}_${base(next)}_${base(third)}`)
    })
  }
  return [...new Set([...triples, ...pairs])]
}

function speaks(word: string, first: boolean): boolean {
  return (
    word.length > 2 &&
    (!(commonWords.has(word) || commonWords.has(base(word))) || (first && (namingVerbs.has(word) || namingVerbs.has(base(word)))))
  )
}

/** A plural's singular, a gerund's verb. */
function base(word: string): string {
  if (/[^aeiou]ing$/.test(word) && word.length > 5) {
    const cut = word.slice(0, -3)
    if (/([bdgmnprt])\1$/.test(cut)) return cut.slice(0, -1)
    return /(?:[aiou][tvzcsgr]|[^aeiou]l|[aeiou]v|let|rs|rg|rv|lv|nc|ng)$/.test(cut) && !/(?:ort|ait|eat|oot|ing)$/.test(cut)
      ? `${cut}e`
      : cut
  }
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(?:x|ch|sh|ss)es$/.test(word)) return word.slice(0, -2)
  return word.length > 3 && word.endsWith('s') && !/(?:ss|us|is)$/.test(word) ? word.slice(0, -1) : word
}

/** A joined name as it is searched for: in snake case, now and then as a class. */
function nameInProse(name: string, draw: Draws): string {
  const camel = () =>
    name
      .split('_')
      .map(word => word[0]!.toUpperCase() + word.slice(1))
      .join('')
  return draw.weighted({ snake: 70, def: 14, camel: 16 }) === 'camel' ? camel() : draw.chance(0.15) ? `def ${name}` : name
}

function distinct(calls: readonly ScriptedCall[]): ScriptedCall[] {
  return [...new Map(calls.map(call => [JSON.stringify(call), call])).values()]
}

/**
 * What a call was made for, from the call alone: observations are weighed by it. A pattern that is no clue of the issue, but that one definition's name holds,
 * was a search for that name.
 */
export function purpose({ call, observation }: Seen, clues: readonly Clue[]): Search {
  const clue = clueOf(call, clues)
  const vague = call.name === 'grep' && (clue.kind === 'word' || (clue.kind === 'name' && !clues.includes(clue)))
  if (!vague) return { call, clue }
  const defined = new Set([...observation.matchAll(/^[^:\n]+:\d+:\s*(?:async )?(?:def|class) (\w+)/gm)].map(match => match[1]!))
  const holding = [...defined].filter(name => name.toLowerCase().includes(clue.text.toLowerCase()))
  return holding.length === 1 ? { call, clue: { kind: 'name', text: holding[0]!, form: 'bare', weight: clue.weight } } : { call, clue }
}

function clueOf({ name, arguments: args }: ScriptedCall, clues: readonly Clue[]): Clue {
  const other = (text: string): Clue => ({ kind: 'word', text, weight: 0.8 })
  if (name === 'read')
    return (
      clues.find(
        clue => clue.kind === 'frame' && clue.path === args.path && Number(args.start) <= clue.line && clue.line <= Number(args.end),
      ) ?? other('')
    )
  const pattern = String(args.pattern)
  if (name === 'glob') {
    const stem = pattern.replace(/^\*\*\/\*?|\*?\.py$/g, '')
    const clue = clues.find(clue => clue.kind === 'module' && (clue.text === stem || clue.text.endsWith(`/${stem}`)))
    return clue ?? { kind: 'word', text: stem, weight: 1 }
  }
  const text = pattern.replace(/^(?:def|class) | =$|\\\($/g, '')
  const clue = clues.find(
    clue =>
      (clue.kind === 'name' && clue.text === text) ||
      (clue.kind === 'frame' && clue.name === text) ||
      (clue.kind === 'message' && text.includes(' ') && clue.text.includes(text)),
  )
  if (clue) return clue
  return /_|[a-z][A-Z]/.test(text) ? { kind: 'name', text, form: 'bare', weight: 2 } : other(text)
}
