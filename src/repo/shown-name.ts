/**
 * A file's name as text that says it in full: itself, or in C quotes as git prints it (`"a\\nb"`) when it is not UTF-8, holds control characters, or begins
 * with a quote. So two files never share a name, and a name never looks like two lines.
 */
export function shownName(raw: Buffer): string {
  const text = raw.toString()
  const plain = !hasControl.test(text) && !text.startsWith('"') && (!text.includes('\ufffd') || Buffer.from(text).equals(raw))
  if (plain) return text
  let quoted = '"'
  for (const byte of raw) {
    if (byte === 0x22 || byte === 0x5c) quoted += `\\${String.fromCharCode(byte)}`
    else if (byte in letterOf) quoted += `\\${letterOf[byte]}`
    else if (byte < 0x20 || byte >= 0x7f) quoted += `\\${byte.toString(8).padStart(3, '0')}`
    else quoted += String.fromCharCode(byte)
  }
  return `${quoted}"`
}

/** The bytes of the name that `shownName` shows. Text in broken quotes stands for itself. */
export function nameBytes(shown: string): Buffer {
  if (!/^"(?:[^"\\]|\\(?:["\\abtnvfr]|[0-3][0-7]{2}))*"$/.test(shown)) return Buffer.from(shown)
  const unquoted = shown.slice(1, -1).replace(/\\([0-3][0-7]{2}|.)/g, (_, code: string) => {
    const byte = code.length === 3 ? Number.parseInt(code, 8) : (byteOf[code] ?? code.charCodeAt(0))
    return String.fromCharCode(byte)
  })
  return Buffer.from(unquoted, 'latin1')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const hasControl = /[\u0000-\u001f\u007f]/
const letterOf: Record<number, string> = { 7: 'a', 8: 'b', 9: 't', 10: 'n', 11: 'v', 12: 'f', 13: 'r' }
const byteOf: Record<string, number> = Object.fromEntries(Object.entries(letterOf).map(([byte, letter]) => [letter, Number(byte)]))
