import type { Foreign } from '../record/item.js'

/** A line of output that is no record of a stream: text for a person, or a row that a command gives in a pipe. It is written as it stands. */
export function printed(line: string | object): Foreign {
  return { kind: 'foreign', bytes: Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)), origin: { file: '-', line: 0 } }
}
