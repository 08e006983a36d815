import { tableText } from '../eval/table-text.js'
import { type Output, textLine } from '../record/item.js'
import type { Table } from '../record/schema.js'
import type { Context } from './command.js'
import { option } from './options.js'

export const formatOption = option.choice(['auto', 'text', 'ndjson'], 'auto', 'lines for a person or a record; auto: lines on a terminal', {
  decides: false,
})

/** Does the command print for a person? */
export function isText(format: 'auto' | 'text' | 'ndjson', terminal: boolean): boolean {
  return format === 'text' || (format === 'auto' && terminal)
}

/** The table as a record, or as lines for a person, which count as one record. */
export function tableOutput(table: Table, text: boolean, { count }: Context): Output[] {
  if (!text) return [table]
  count.out++
  return tableText(table).map(textLine)
}
