import type { PatchFile } from './patch.js'

/** The name under which an entry can be found before the patch: the old one; of additions and copies, which are not there yet, the new one. */
export function goldFile(file: PatchFile): string {
  return (file.status === 'A' || file.status === 'C' ? file.new : file.old)!
}

/**
 * The gold files of a patch, rule `codegrep`: every entry counts, tests, documents, binary and mode-only ones too; one path once, in the patch's order
 * (CodeGrep, section 3.3: the files of the gold patch).
 */
export function goldFiles(files: readonly PatchFile[]): string[] {
  return [...new Set(files.map(goldFile))]
}
