import { git } from './git.js'

/** A tracked regular file: its name as shown, its bytes where they differ from that, the id and size of its blob. */
export type TrackedFile = { path: string; raw?: Buffer; oid: string; size: number; executable: boolean }

/**
 * The regular files of a tree in bytewise order of their names (git-ls-tree(1), `-z`).
 *
 * Links and submodules are left out, and so are names that git would not check out or that could leave the tree: empty, `.`, `..` and `.git` parts, in any
 * case. Throws GitFailure if the tree is not there.
 */
export async function listTree(bare: string, tree: string, signal?: AbortSignal): Promise<TrackedFile[]> {
  const out = await git({ bare }, ['ls-tree', '-r', '-z', '-l', '--full-tree', tree], signal ? { signal } : {})
  const files: TrackedFile[] = []
  for (let at = 0; at < out.length; ) {
    const end = out.indexOf(0, at)
    // <mode> SP <type> SP <oid> SP <size, padded> TAB <name>
    const tab = out.indexOf(9, at)
    const [mode, , oid, size] = out.toString('latin1', at, tab).split(/ +/) as [string, string, string, string]
    const raw = out.subarray(tab + 1, end)
    at = end + 1
    if ((mode !== '100644' && mode !== '100755') || !staysInside(raw)) continue
    const path = shownName(raw)
    files.push({ path, ...(path.startsWith('"') ? { raw: Buffer.from(raw) } : {}), oid, size: Number(size), executable: mode === '100755' })
  }
  return files
}

/** The bytes of a file's name. */
export function nameBytes(file: TrackedFile): Buffer {
  return file.raw ?? Buffer.from(file.path)
}

/**
 * A name as text that says it in full: itself, or in C quotes as git prints it (`"a\\nb"`) when it is not UTF-8, holds control characters, or begins with a
 * quote. So two files never share a name and a name never looks like two lines.
 */
export function shownName(raw: Buffer): string {
  const text = raw.toString()
  const plain = !hasControl.test(text) && !text.startsWith('"') && (!text.includes('\ufffd') || Buffer.from(text).equals(raw))
  if (plain) return text
  let quoted = '"'
  for (const byte of raw) {
    if (byte === 0x22 || byte === 0x5c) quoted += `\\${String.fromCharCode(byte)}`
    else if (byte in escapes) quoted += escapes[byte]
    else if (byte < 0x20 || byte >= 0x7f) quoted += `\\${byte.toString(8).padStart(3, '0')}`
    else quoted += String.fromCharCode(byte)
  }
  return `${quoted}"`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const hasControl = /[\u0000-\u001f\u007f]/
const escapes: Record<number, string> = { 7: '\\a', 8: '\\b', 9: '\\t', 10: '\\n', 11: '\\v', 12: '\\f', 13: '\\r' }

function staysInside(raw: Buffer): boolean {
  return raw
    .toString('latin1')
    .split('/')
    .every(part => part !== '' && part !== '.' && part !== '..' && part.toLowerCase() !== '.git')
}
