import { option } from './options.js'

/** Where clones and worktrees are kept; of every subcommand. */
export const storeOption = option.string(
  undefined,
  'where clones and worktrees are kept; default $CG_STORE, else in the XDG data directory',
  { metavar: 'DIR' },
)

/** Seconds of an age such as `30d`, `12h`, `45m` or `90s`; undefined for anything else. */
export function ageSeconds(text: string): number | undefined {
  const found = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/.exec(text)
  if (!found) return undefined
  return Number(found[1]) * { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }[found[2] as 's' | 'm' | 'h' | 'd' | 'w']
}

/** `4.2 GB`, for people. */
export function sizeWords(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let unit = 0
  let size = bytes
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`
}

/** `3 worktrees`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
