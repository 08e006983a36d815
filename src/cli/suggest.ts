/** The known word that a mistyped one most resembles, or undefined when none is near. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const distance = edits(word, candidate)
    if (distance < least) {
      best = candidate
      least = distance
    }
  }
  return best
}

/** `: did you mean X?`, or nothing. */
export function didYouMean(word: string, known: Iterable<string>, prefix = ''): string {
  const found = suggest(word, known)
  return found === undefined ? '' : `: did you mean ${prefix}${found}?`
}

/** Insertions, deletions, substitutions and swaps of neighbours that make b of a (optimal string alignment). */
function edits(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min(row[j]! + 1, next[j - 1]! + 1, change)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1)
      next.push(cost)
    }
    before = row
    row = next
  }
  return row[b.length]!
}
