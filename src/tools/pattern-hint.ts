/** What to write instead, for each of the parser's complaints: models use the dialects of grep, sed and Perl by turns. */
const advice: [complaint: RegExp, hint: string][] = [
  [/look-around/, 'search for a simpler pattern and read the lines around it'],
  [/backreference/, 'search for a simpler pattern'],
  [/unclosed group/, 'a literal ( is written \\('],
  [/unopened group/, 'a literal ) is written \\)'],
  [/unclosed character class/, 'a literal [ is written \\['],
  [/repetition operator missing/, 'a literal * + or ? is written with a backslash before it'],
  [/counted repetition|repetition quantifier|decimal/, 'a literal { is written \\{'],
  [/unrecognized escape/, 'a backslash stands before punctuation, or in \\d \\s \\w \\b'],
  [/is not allowed in a regex/, 'a pattern matches within one line'],
  [/size limit/, 'use smaller repetition counts'],
]

/** Words of the status for a pattern that the parser refused: what it said, and what to do. */
export function badPattern(pattern: string, complaint: string): string {
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(pattern)) return 'bad pattern: it ends in a backslash: a literal one is written \\\\'
  const said = complaint.replace(', including look-ahead and look-behind,', '')
  const hint = advice.find(([about]) => about.test(complaint))?.[1]
  return `bad pattern: ${said}${hint ? `: ${hint}` : ''}`
}

/** Words to add where nothing matched but the pattern looks like another dialect, in which it would mean something else. */
export function dialectHint(pattern: string): string | undefined {
  if (/(?:^|[^\\])(?:\\\\)*\\\|/.test(pattern)) return '\\| is a literal |, alternatives are written a|b'
  return undefined
}
