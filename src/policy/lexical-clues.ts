import type { Instance } from '../record/schema.js'
import { commonWords, pythonNames } from './lexical-words.js'

/** Something in an issue that can be searched for. */
export type Clue =
  /** A traceback's frame in a file that may be the repository's; `depth` 0 is where the exception was raised. */
  | { kind: 'frame'; path: string; line: number; name: string; depth: number; weight: number }
  /** A name that code defines. `setting`: in snake case without a call; `bare`: a plain word, quoted as code, that may be anything. */
  | { kind: 'name'; text: string; form: 'function' | 'class' | 'constant' | 'setting' | 'bare'; weight: number }
  /** Words of an error message or a log line, without the values in it. */
  | { kind: 'message'; text: string; weight: number }
  /** A module or package: `help/wrapping`, `fish`. */
  | { kind: 'module'; text: string; weight: number }
  /** A word of prose. */
  | { kind: 'word'; text: string; weight: number }

/**
 * The clues of an issue, the surest first; equal ones in order of appearance. Deterministic, from the text alone.
 *
 * The project's own name is none: it is everywhere.
 */
export function issueClues({ repo, problem_statement }: Pick<Instance, 'repo' | 'problem_statement'>): Clue[] {
  const text = problem_statement.replaceAll('\r\n', '\n').replace(elsewhere, ' ')
  const project = (repo.split('/').at(-1) ?? '').toLowerCase()
  const { frames, rest } = takeTracebacks(text)
  const found = new Map<string, Clue>()
  const add = (clue: Clue) => {
    if (clue.kind !== 'frame' && clue.text.toLowerCase().replaceAll('_', '-') === project.replaceAll('_', '-')) return
    const key = `${clue.kind} ${clue.kind === 'frame' ? `${clue.path}:${clue.line}` : clue.text}`
    const before = found.get(key)
    if (before) before.weight += clue.weight / 4
    else found.set(key, clue)
  }
  frames.forEach(add)
  for (const message of messages(rest, project)) add(message)
  for (const clue of modules(rest)) add(clue)
  for (const clue of names(rest)) add(clue)
  for (const clue of words(rest, found)) add(clue)
  return [...found.values()].sort((a, b) => b.weight - a.weight)
}

/** Addresses, and lines about who wrote a commit: they lead out of the repository. */
const elsewhere = /https?:\/\/[^\s)>\]]+|<?[\w.+-]+@[\w-]+\.[\w.-]+>?|^[ \t]*(?:co-authored|signed-off|reviewed|reported)-by:.*$/gim

const frameLine = /^[ \t]*File "([^"\n]+)", line (\d+)(?:, in (\S+))?[^\n]*$/

/** Frames of tracebacks, and the text without them: the lines between frames are code that happened to be on the way. */
function takeTracebacks(text: string): { frames: Clue[]; rest: string } {
  const frames: { path: string; line: number; name: string }[] = []
  const rest: string[] = []
  let inside = false
  for (const line of text.split('\n')) {
    const frame = frameLine.exec(line)
    if (frame) {
      inside = true
      frames.push({ path: frame[1]!, line: Number(frame[2]), name: frame[3] ?? '' })
    } else if (inside && /^\s/.test(line)) {
      // the frame's source line
    } else {
      inside = false
      if (!/^Traceback \(most recent call last\)/.test(line)) rest.push(line)
    }
  }
  const inside_ = frames.filter(f => !/(^|\/)(site-packages|dist-packages|lib\/python[\d.]*)\//.test(f.path) && !f.path.startsWith('<'))
  const clues = inside_.toReversed().map((f, depth): Clue => ({ kind: 'frame', ...f, depth, weight: 8 / (1 + depth) }))
  return { frames: clues, rest: rest.join('\n') }
}

/** Error messages and log lines: lines set apart that read like one, what something "says", quoted strings of several words. */
function messages(text: string, project: string): Clue[] {
  const out: Clue[] = []
  const add = (message: string, weight: number) => out.push(...fragments(message, project, weight))
  for (const line of text.split('\n')) {
    const exception = /^\s*(?:[\w.]*\.)?([A-Z]\w*(?:Error|Exception|Warning|Exit)): (.+)$/.exec(line)
    const apart =
      /^(?:\s{2,}|\t|> )/.test(line) && !/[=({[]\s*$|^\s*(?:>>>|#|\$|(?:def|class|return|import|from|for|if)\b)|\w\(|^\s*\S+ = /.test(line)
    const logged = /^(?:[\w-]+: (?=\S)|"?(?:ERROR|WARNING|INFO|DEBUG|CRITICAL|FATAL)\b)/.test(line)
    if (exception) add(exception[2]!, pythonNames.has(exception[1]!) ? 1 : 4)
    else if (apart || logged)
      add(line.replace(/^\W*(?:ERROR|WARNING|INFO|DEBUG|CRITICAL|FATAL) (?:[\w.]+: )?/, ''), logged || /:/.test(line) ? 4 : 3)
  }
  for (const match of text.matchAll(/\b(?:says|saying|said|with|answers|prints|reports|message(?: is)?|error(?: is)?): ([^\n]{8,100})/g))
    add(match[1]!, 4)
  for (const match of text.matchAll(/"([^"\n]{8,120})"|`([^`\n]{8,120})`|“([^”\n]{8,120})”/g)) {
    const quoted = match[1] ?? match[2] ?? match[3]!
    if (/[a-z]+ [a-z]+/i.test(quoted) && !/[()=]/.test(quoted)) add(quoted, match[2] ? 3 : 4)
  }
  return out
}

/** Runs of at least two words between the values of a message; the two longest. */
function fragments(message: string, project: string, weight: number): Clue[] {
  const valueOrMark = /(?:['"`][^'"`]*['"`]|\S*[\d/\\=<>{}()[\]$%@*_|^+]\S*|(?<!\w)--?[\w-]+|\w+\.\w[\w.]*|[:;,.!?]+(?=\s|$)|->|[^\w\s'-])/g
  const runs = message
    .split(valueOrMark)
    .map(run => run.trim().replace(/^[^\w]+|[^\w]+$/g, ''))
    .filter(run => /\w+ \w+/.test(run) && run.length >= 8 && !run.toLowerCase().startsWith(`${project} `))
  return runs
    .toSorted((a, b) => b.length - a.length)
    .slice(0, 2)
    .map((text, i): Clue => ({ kind: 'message', text: text.split(/\s+/).slice(0, 5).join(' '), weight: weight / (1 + i / 2) }))
}

function modules(text: string): Clue[] {
  const out: Clue[] = []
  for (const match of text.matchAll(/(?<![\w/.])((?:[\w-]+\/)*[\w-]+)\.py\b/g)) out.push({ kind: 'module', text: match[1]!, weight: 5 })
  for (const match of text.matchAll(
    /[`"'“]?\b([a-z]\w+)[`"'”]?\s+((?:sub)?(?:module|package)|reader|writer|parser|loader|formatter|renderer|exporter|plugin|backend)s?\b/gi,
  )) {
    const name = match[1]!.toLowerCase()
    if (!commonWords.has(name) && name.length > 2)
      out.push({ kind: 'module', text: name, weight: /package|module/i.test(match[2]!) ? 4 : 3 })
  }
  for (const match of text.matchAll(/(?<![\w.@/"'-])([a-z_]\w*(?:\.[a-z_]\w*)+)(?![\w(.]*[=(@])/g)) {
    const parts = match[1]!.split('.')
    if (dataSuffixes.has(parts.at(-1)!) || parts.at(-1)!.length < 3) continue
    if (parts.length > 1 && !pythonNames.has(parts[0]!) && parts[0] !== 'self')
      out.push({ kind: 'module', text: parts.slice(1).join('/'), weight: 3 })
  }
  return out
}

/** Endings of file names that look like dotted paths. */
const dataSuffixes = new Set('py ini cfg json toml yaml yml xml html css csv tsv txt md rst log org com net conf db lock'.split(' '))

/** Identifiers: by their spelling, by a call's parenthesis, or because the issue sets them as code. */
function names(text: string): Clue[] {
  const out: Clue[] = []
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(m => [m.index, m.index + m[0].length] as const)
  for (const match of text.matchAll(/(?<![\w/$-])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\(?)/g)) {
    const code = quoted.some(([a, b]) => match.index > a && match.index < b)
    const parts = match[1]!.split('.')
    const whole = code && text[match.index - 1] === '`' && /^[`(]/.test(text.slice(match.index + match[1]!.length))
    const early = match.index < 160 ? 0.5 : 0
    parts.forEach((part, i) => {
      const last = i === parts.length - 1
      const form = formOf(part, last && match[2] === '(', parts.length > 1 && last && i > 0 && /^[A-Z]/.test(parts[i - 1]!))
      if (pythonNames.has(part) || part.length < 3) return
      const qualifier = !last && form === 'class' ? -1.5 : 0 // of Class.method, the method is meant
      if (form) out.push({ kind: 'name', text: part, form, weight: (form === 'constant' ? 3 : 4) + (code ? 1 : 0) + early + qualifier })
      else if (whole && last && /^[a-z]\w+$/.test(part) && !commonWords.has(part))
        out.push({ kind: 'name', text: part, form: 'bare', weight: 2.5 + early })
    })
  }
  return out
}

function formOf(name: string, called: boolean, method: boolean): 'function' | 'class' | 'constant' | 'setting' | undefined {
  if (/^_*[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(name)) return 'constant'
  if (/^_?[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+$/.test(name)) return 'class'
  if (called && /^[A-Z][a-z]+$/.test(name)) return 'class'
  if (/^_*[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(name) || /^_[a-z]\w+$/.test(name)) return called || method ? 'function' : 'setting'
  if ((called || method) && /^[a-z]\w{2,}$/.test(name) && !commonWords.has(name)) return 'function'
  return undefined
}

/** Prose, for issues that name nothing: rarer-looking words first, each once. */
function words(text: string, found: ReadonlyMap<string, Clue>): Clue[] {
  const taken = new Set([...found.values()].flatMap(clue => ('text' in clue ? clue.text.toLowerCase().split(/[^a-z]+/) : [])))
  const counts = new Map<string, number>()
  for (const match of text.toLowerCase().matchAll(/(?<![\w./-])[a-z]{4,}(?![\w/])/g)) {
    const word = stem(match[0])
    if (!commonWords.has(match[0]) && !commonWords.has(word) && !taken.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return [...counts].map(([text, count]): Clue => ({ kind: 'word', text, weight: Math.min(1, 0.4 + count / 5 + text.length / 40) }))
}

/** A plural's singular: grep finds both with it. */
function stem(word: string): string {
  if (word.length > 5 && word.endsWith('ies')) return word.slice(0, -3)
  return word.length > 4 && word.endsWith('s') && !/(ss|us|is)$/.test(word) ? word.slice(0, -1) : word
}
