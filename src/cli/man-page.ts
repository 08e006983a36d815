import type { AnyCommand } from './command.js'
import { exitMeanings } from './exits.js'
import { flagWords, optionText, usageLine, words } from './help.js'
import { type OptionTable, sharedOptions } from './options.js'
import { entry, header, paragraph, roff, section, subsection, typed } from './roff.js'
import { version } from './version.js'

/** The page cg-x(1), rendered from the command's table; subcommands have a part each. */
export function commandPage(command: AnyCommand): string {
  const subcommands = Object.values(command.subcommands ?? {})
  const synopsis = [command, ...subcommands].map(
    ({ name }, n) => `${n > 0 ? '.br\n' : ''}\\fB${roff(name)}\\fR${roff(usageLine([command, ...subcommands][n]!).slice(name.length))}\n`,
  )
  return [
    header(command.name, 1, version),
    section('name', `${roff(command.name)} \\- ${roff(command.about)}\n`),
    section('synopsis', synopsis.join('')),
    section('description', description(command)),
    Object.keys(command.options).length > 0 ? section('options', options(command.options)) : '',
    section('shared options', options(sharedOptions)),
    subcommands.length > 0
      ? section(
          'subcommands',
          subcommands
            .map(sub => subsection(sub.name, paragraph(sentence(sub.about)) + description(sub) + options(sub.options) + examples(sub)))
            .join(''),
        )
      : '',
    section('exit status', exitMeanings.map(([status, meaning]) => entry(status, meaning)).join('')),
    section('environment', environment()),
    command.examples.length > 0 ? section('examples', examples(command)) : '',
    section('see also', `${roff(seeAlso(command.name))}\n`),
  ].join('')
}

function description(command: AnyCommand): string {
  const stream =
    command.standalone === true || command.unavailable
      ? ''
      : paragraph(
          `Reads ${words(command.reads)} from the FILEs, or from standard input when there is none or it is -, and writes ${words(command.writes)}; every other line passes as it is. See cg-record(5).`,
        )
  const args = (command.positionals ?? []).map(({ name, about }) => entry(name, about)).join('')
  return stream + (command.notes ?? []).map(paragraph).join('') + args
}

function options(table: OptionTable): string {
  return Object.entries(table)
    .map(([name, option]) => entry(flagWords(name, option), optionText(option)))
    .join('')
}

function examples(command: AnyCommand): string {
  return command.examples.map(([what, line]) => paragraph(`${sentence(what).slice(0, -1)}:`) + typed(line)).join('')
}

function environment(): string {
  return [
    entry('CG_CACHE', 'the cache file, unless --cache names one'),
    entry('XDG_CACHE_HOME', 'where the cache is when nothing else says so; default ~/.cache'),
    entry('NO_COLOR, TERM', 'no colours when NO_COLOR is set or TERM is dumb'),
  ].join('')
}

function seeAlso(name: string): string {
  const pages = ['worktree', 'mine', 'judge', 'rollout', 'reward', 'train', 'eval']
    .map(stage => `cg-${stage}`)
    .filter(page => page !== name)
  return [...pages.map(page => `${page}(1)`), 'cg-record(5)', 'cg-recovery(7)'].join(', ')
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`
}
