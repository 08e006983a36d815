import type { TrackedFile } from '../repo/ls-tree.js'
import { nameBytes, shownName } from '../repo/shown-name.js'

/**
 * The files of a tree, to be looked up by path. Paths are as shown; folders are where names have a `/`, compared as bytes, so that a file with a name in
 * quotes is found in its folder like any other.
 */
export type FileIndex = {
  /** In bytewise order of their names. */
  files: readonly TrackedFile[]
  paths: readonly string[]
  /** The file at a path. */
  file(path: string): TrackedFile | undefined
  /** A file by the bytes of its name, as a latin1 string. */
  named(key: string): TrackedFile | undefined
  /** The file at a path, or all files below it (`''`: all). Empty: there is neither. */
  within(path: string): readonly TrackedFile[]
  /** What a folder holds, one level deep: names, those of folders end in `/`. Undefined: no such folder. */
  entries(path: string): string[] | undefined
}

/** Indexes files that are in bytewise order of their names. */
export function indexFiles(files: readonly TrackedFile[]): FileIndex {
  const keys = files.map(file => keyOf(file.path))
  const at = new Map(keys.map((key, i) => [key, i]))
  const paths = files.map(file => file.path)

  const named = (key: string) => files[at.get(key) ?? -1]
  const file = (path: string) => named(keyOf(path))
  const within = (path: string) => {
    if (path === '') return files
    const one = file(path)
    if (one) return [one]
    const key = keyOf(path)
    // All names below a folder are neighbours: they lie between `folder/` and `folder0`, the character after the slash.
    return files.slice(lowerBound(keys, `${key}/`), lowerBound(keys, `${key}0`))
  }
  const entries = (path: string) => {
    const start = path === '' ? 0 : keyOf(path).length + 1
    const below = file(path) ? [] : within(path)
    if (below.length === 0 && path !== '') return undefined
    const names = below.map(({ path }) => {
      const name = keyOf(path).slice(start)
      const slash = name.indexOf('/')
      return slash < 0 ? shownName(Buffer.from(name, 'latin1')) : `${shownName(Buffer.from(name.slice(0, slash), 'latin1'))}/`
    })
    return [...new Set(names)]
  }
  return { files, paths, file, named, within, entries }
}

function keyOf(path: string): string {
  return nameBytes(path).toString('latin1')
}

/** The first index whose key is not below `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}
