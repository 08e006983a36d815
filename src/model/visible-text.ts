/** What a turn says outside its thoughts: everything behind the last `</think>`, and nothing of a thought that is still open. */
export function visibleText(turn: string): string {
  const closed = turn.lastIndexOf('</think>')
  const after = closed < 0 ? turn : turn.slice(closed + '</think>'.length)
  const open = after.indexOf('<think>')
  return open < 0 ? after : after.slice(0, open)
}
