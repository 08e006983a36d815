import { z } from 'zod'
import { type Kind, schemas } from '../record/schema.js'
import type { AnyCommand } from './command.js'

/** JSON Schema (2020-12) of a record kind, as it is written. */
export function kindSchema(kind: Kind): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(schemas[kind], { io: 'input' })
  return schema as Record<string, unknown>
}

/** JSON Schema of the lines a command reads and writes: `$defs` has one schema per kind, `reads` and `writes` name them. */
export function commandSchema(command: AnyCommand): Record<string, unknown> {
  const bookends: Kind[] = ['run', 'end', 'barrier', 'fault']
  const writes = command.writes.length > 0 ? [...new Set([...command.writes, ...bookends])] : []
  const kinds = [...new Set([...command.reads, ...writes])]
  const refs = (names: readonly Kind[]) => ({ anyOf: names.map(name => ({ $ref: `#/$defs/${name}` })) })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: command.name,
    description: command.about,
    reads: command.reads.length > 0 ? refs(command.reads) : false,
    writes: writes.length > 0 ? refs(writes) : false,
    $defs: Object.fromEntries(kinds.map(kind => [kind, kindSchema(kind)])),
  }
}
