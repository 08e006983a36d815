/** Without the CRs at its end. Not by /\r+$/, which looks at every run of CRs anywhere in a line again from each of its characters. */
export function withoutReturns(line: string): string {
  let end = line.length
  while (line[end - 1] === '\r') end--
  return line.slice(0, end)
}
