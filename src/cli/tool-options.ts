import { codegrep, codegrepCaps } from '../tools/codegrep.js'
import type { Toolset } from '../tools/toolset.js'
import { type OptionValues, option } from './options.js'

/** The caps of tool output, for every command that runs tools. */
export const toolOptions = {
  'max-chars': option.integer(codegrepCaps.chars, 'characters of one observation', { min: 100, metavar: 'N' }),
  'max-matches': option.integer(codegrepCaps.matches, 'matches of one grep, files of one glob', { min: 1, metavar: 'N' }),
  'max-lines': option.integer(codegrepCaps.lines, 'lines of one observation', { min: 1, metavar: 'N' }),
  'max-line-chars': option.integer(codegrepCaps.lineChars, 'characters of one line; longer ones are cut around the match', {
    min: 10,
    metavar: 'N',
  }),
  'grep-glob': option.string(undefined, "files that grep sees when it is given no glob, e.g. '*.py'; default all", { metavar: 'GLOB' }),
  'grep-timeout': option.number(codegrepCaps.timeoutMs.grep / 1000, 'time limit of one grep', { min: 0.001, metavar: 'SEC' }),
  'glob-timeout': option.number(codegrepCaps.timeoutMs.glob / 1000, 'time limit of one glob', { min: 0.001, metavar: 'SEC' }),
  'read-timeout': option.number(codegrepCaps.timeoutMs.read / 1000, 'time limit of one read', { min: 0.001, metavar: 'SEC' }),
}

/** The toolset `codegrep` under the caps that the options say. */
export function toolsetOf(options: OptionValues<typeof toolOptions>): Toolset {
  return codegrep({
    chars: options['max-chars'],
    matches: options['max-matches'],
    lines: options['max-lines'],
    lineChars: options['max-line-chars'],
    ...(options['grep-glob'] === undefined ? {} : { grepGlob: options['grep-glob'] }),
    timeoutMs: { grep: options['grep-timeout'] * 1000, glob: options['glob-timeout'] * 1000, read: options['read-timeout'] * 1000 },
  })
}
