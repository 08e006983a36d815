import { commonWords, pythonNames } from './lexical-words.js'

/** Something in an issue that can be searched for. */
export type Clue =
  /** A traceback's frame in a file that may be the repository's; `depth` 0 is where the exception was raised. */
  | { kind: 'frame'; path: string; line: number; name: string; depth: number; weight: number }
  /** A name that code defines. `bare`: a plain word, quoted as code, that may be anything. */
  | { kind: 'name'; text: string; form: 'function' | 'class' | 'constant' | 'bare'; weight: number }
  /** Words of an error message or a log line, without the values in it. */
  | { kind: 'message'; text: string; weight: number }
  /** A module or package: `help/wrapping`, `fish`. */
  | { kind: 'module'; text: string; weight: number }
  /** A word of prose. */
  | { kind: 'word'; text: string; weight: number }

/** The clues of an issue, the surest first; equal ones in order of appearance. Deterministic, from the text alone. */
export function issueClues(issue: string): Clue[] {
  const text = issue.replaceAll('\r\n', '\n')
  const { frames, rest } = takeTracebacks(text)
  const found = new Map<string, Clue>()
  const add = (clue: Clue) => {
    const key = `${clue.kind} ${clue.kind === 'frame' ? `${clue.path}:${clue.line}` : clue.text}`
    const before = found.get(key)
    if (before) before.weight += clue.weight / 4
    else found.set(key, clue)
  }
  frames.forEach(add)
  for (const message of messages(rest)) add(message)
  for (const clue of modules(rest)) add(clue)
  for (const clue of names(rest)) add(clue)
  for (const clue of words(rest, found)) add(clue)
  return [...found.values()].sort((a, b) => b.weight - a.weight)
}

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

/** Error messages and log lines: lines set apart that read like one, quoted strings of several words. */
function messages(text: string): Clue[] {
  const out: Clue[] = []
  for (const line of text.split('\n')) {
    const exception = /^\s*(?:[\w.]*\.)?([A-Z]\w*(?:Error|Exception|Warning|Exit)): (.+)$/.exec(line)
    const logged = /^(?:\s{2,}|\t|[\w.-]+: )(?=.*\w+ \w+).*$/.test(line) && !/[=({]\s*$|^\s*(?:def|class|return|import|from|for|if|>>>|#)\b/.test(line)
    if (exception) out.push(...fragments(exception[2]!, pythonNames.has(exception[1]!) ? 2 : 4))
    else if (logged && /:/.test(line)) out.push(...fragments(line, 4))
  }
  for (const match of text.matchAll(/"([^"\n]{8,120})"|`([^`\n]{8,120})`|“([^”\n]{8,120})”/g)) {
    const quoted = match[1] ?? match[2] ?? match[3]!
    if (/[a-z]+ [a-z]+/i.test(quoted) && !/[()=]/.test(quoted)) out.push(...fragments(quoted, 4))
  }
  return out
}

/** Runs of at least two words between the values of a message; the two longest. */
function fragments(message: string, weight: number): Clue[] {
  const valueOrMark = /(?:['"`][^'"`]*['"`]|\S*[\d/\\=<>{}()[\]$%@*_|^+]\S*|(?<!\w)--?[\w-]+|\w+\.\w[\w.]*|[:;,.!?]+(?=\s|$)|->|[^\w\s'-])/g
  const runs = message
    .split(valueOrMark)
    .map(run => run.trim().replace(/^[^\w]+|[^\w]+$/g, ''))
    .filter(run => /\w+ \w+/.test(run) && run.length >= 8)
  return runs
    .toSorted((a, b) => b.length - a.length)
    .slice(0, 2)
    .map((text, i): Clue => ({ kind: 'message', text: text.split(/\s+/).slice(0, 5).join(' '), weight: weight / (1 + i / 2) }))
}

function modules(text: string): Clue[] {
  const out: Clue[] = []
  for (const match of text.matchAll(/(?<![\w/.])((?:[\w-]+\/)*[\w-]+)\.py\b/g)) out.push({ kind: 'module', text: match[1]!, weight: 5 })
  for (const match of text.matchAll(/[`"'“]?\b([a-z]\w+)[`"'”]?\s+(?:sub)?(?:module|package)s?\b/gi)) {
    const name = match[1]!.toLowerCase()
    if (!commonWords.has(name) && name.length > 2) out.push({ kind: 'module', text: name, weight: 4 })
  }
  for (const match of text.matchAll(/(?<![\w.@/"'-])([a-z_]\w*(?:\.[a-z_]\w*)+)(?![\w(.]*[=(@])/g)) {
    const parts = match[1]!.split('.')
    if (parts.length > 1 && !pythonNames.has(parts[0]!) && parts[0] !== 'self') out.push({ kind: 'module', text: parts.slice(1).join('/'), weight: 3 })
  }
  return out
}

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
      if (form) out.push({ kind: 'name', text: part, form, weight: (form === 'constant' ? 3 : 4) + (code ? 1.5 : 0) + early })
      else if (whole && last && /^[a-z]\w+$/.test(part) && !commonWords.has(part)) out.push({ kind: 'name', text: part, form: 'bare', weight: 2.5 + early })
    })
  }
  return out
}

function formOf(name: string, called: boolean, method: boolean): 'function' | 'class' | 'constant' | undefined {
  if (/^_*[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(name)) return 'constant'
  if (/^_?[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+$/.test(name)) return 'class'
  if (called && /^[A-Z][a-z]+$/.test(name)) return 'class'
  if (/^_*[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(name) || /^_[a-z]\w+$/.test(name)) return 'function'
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
