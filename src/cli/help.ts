import type { AnyCommand, Positional } from './command.js'
import { exitMeanings } from './exits.js'
import { type AnyOption, flagName, type OptionTable, sharedOptions } from './options.js'

/** Help is the same everywhere: whatever the terminal and whatever LANG. */
const width = 80
const indent = 26

/** One line that says how a command is called: `cg-x [OPTION]... [FILE]...`. */
export function usageLine(command: AnyCommand): string {
  const words = [command.name, '[OPTION]...']
  if (command.subcommandOnly) words[1] = 'SUBCOMMAND [OPTION]...'
  for (const positional of command.positionals ?? []) words.push(placeholder(positional))
  if (command.standalone !== true) words.push('[FILE]...')
  return words.join(' ')
}

/** What a wrong call gets on standard error. */
export function shortUsage(command: AnyCommand): string {
  return `usage: ${usageLine(command)}\nTry '${command.name} --help'.\n`
}

/** Everything there is to say about a command, in 80 columns. */
export function help(command: AnyCommand): string {
  const sections = [`usage: ${usageLine(command)}\n\n${wrap(sentence(command.about), '')}`]
  if (command.subcommands)
    sections.push(
      `Subcommands:\n${Object.entries(command.subcommands)
        .map(([name, { about }]) => entry(`  ${name}`, about))
        .join('')}`,
    )
  if (command.positionals?.length)
    sections.push(`Arguments:\n${command.positionals.map(positional => entry(`  ${positional.name}`, positional.about)).join('')}`)
  if (Object.keys(command.options).length > 0) sections.push(`Options:\n${optionLines(command.options)}`)
  sections.push(`Shared options:\n${optionLines(sharedOptions)}`)
  if (command.standalone !== true)
    sections.push(
      wrap(
        `No FILE, or -, is standard input. Reads ${words(command.reads)}; writes ${words(command.writes)}; passes every other line on.`,
        '',
      ),
    )
  for (const note of command.notes ?? []) sections.push(wrap(note, ''))
  if (command.examples.length > 0)
    sections.push(`Examples:\n${command.examples.map(([what, line]) => `${wrap(`${what}:`, '  ')}    ${line}\n`).join('')}`)
  sections.push(`Exit status:\n${exitMeanings.map(([status, meaning]) => `  ${status.padEnd(6)} ${meaning}\n`).join('')}`)
  return sections.join('\n')
}

/** `-j, --jobs N`. */
export function flagWords(name: string, option: AnyOption): string {
  const value = metavar(option)
  return `${option.alias ? `-${option.alias}, ` : ''}--${flagName(name)}${value ? ` ${value}` : ''}`
}

/** What an option decides, with its choices, its bounds and its default. */
export function optionText(option: AnyOption): string {
  const facts: string[] = []
  if (option.type === 'choice') facts.push(`one of ${option.choices?.join(', ')}`)
  if (option.type === 'list') facts.push('may be repeated')
  if (['string', 'number', 'choice'].includes(option.type) && option.default !== undefined && option.default !== '')
    facts.push(`default ${option.default}`)
  return facts.length > 0 ? `${option.about} (${facts.join('; ')})` : option.about
}

/** What stands for an option's value; empty for flags. */
export function metavar(option: AnyOption): string {
  if (option.type === 'boolean' || option.type === 'count') return ''
  return option.metavar ?? { string: 'TEXT', number: 'N', choice: 'NAME', list: 'TEXT' }[option.type]
}

export function placeholder({ name, optional, many }: Positional): string {
  const word = many ? `${name}...` : name
  return optional ? `[${word}]` : word
}

/** `instance and rollout records`. */
export function words(kinds: readonly string[]): string {
  if (kinds.length === 0) return 'no records'
  const last = kinds.at(-1)
  return `${kinds.length > 1 ? `${kinds.slice(0, -1).join(', ')} and ${last}` : last} records`
}

function optionLines(table: OptionTable): string {
  return Object.entries(table)
    .map(([name, option]) => entry(`  ${option.alias ? '' : '    '}${flagWords(name, option)}`, optionText(option)))
    .join('')
}

function entry(head: string, text: string): string {
  const lines = wrap(text, ' '.repeat(indent))
  return head.length < indent - 1 ? head + lines.slice(head.length) : `${head}\n${lines}`
}

function wrap(text: string, prefix: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line && prefix.length + line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line ? `${line} ${word}` : word
  }
  lines.push(line)
  return lines.map(text => `${prefix}${text}\n`).join('')
}

function sentence(about: string): string {
  return `${about[0]?.toUpperCase() ?? ''}${about.slice(1)}${about.endsWith('.') ? '' : '.'}`
}
