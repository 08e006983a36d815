/** Lines changed together: nothing unchanged stands between them. */
export type Run = {
  /** Old-side number of the first removed line; without removals that of the line behind the insertion, so that k = oldLine − 1 (0: top of the file). */
  oldLine: number
  removed: number
  /** New-side number of the first added line. */
  newLine: number
  added: number
}

export type Hunk = {
  oldStart: number
  oldCount: number
  newStart: number
  newCount: number
  /** Text behind the second `@@`. */
  section: string
  runs: Run[]
  hasContext: boolean
  endsInContext: boolean
  noNewlineOld: boolean
  noNewlineNew: boolean
}

/** One entry of a patch. `old` is null for an addition, `new` for a deletion. Modes are octal as git writes them, null where the patch does not say. */
export type PatchFile = {
  old: string | null
  new: string | null
  status: 'A' | 'M' | 'D' | 'R' | 'C'
  similarity: number | null
  dissimilarity: number | null
  oldMode: string | null
  newMode: string | null
  binary: boolean
  hunks: Hunk[]
}

export type PatchFaultCode = 'truncated' | 'corrupt' | 'fragment without header' | 'combined' | 'empty' | 'no name' | 'bad quote'

/** A text that is no patch we can read: what is wrong, at which of its lines (from 1). */
export class PatchFault extends Error {
  constructor(
    readonly code: PatchFaultCode,
    readonly line: number,
    message: string,
  ) {
    super(message)
    this.name = 'PatchFault'
  }
}

/** Is the entry a commit of another repository (mode 160000), which has no lines here? */
export function isGitlink(file: PatchFile): boolean {
  return file.oldMode === '160000' || file.newMode === '160000'
}
