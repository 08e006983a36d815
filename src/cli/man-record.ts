import { codes } from '../record/codes.js'
import { type Kind, schemas } from '../record/schema.js'
import { entry, header, paragraph, roff, section, subsection } from './roff.js'
import { kindSchema } from './schema.js'
import { version } from './version.js'

const kindTexts: Record<Kind, string> = {
  instance:
    'An issue of a repository at a commit, as SWE-bench and its relatives write it. A row without kind that has instance_id and problem_statement or base_commit is one.',
  trajectory: 'What an agent did. A row without kind that has trajectory or messages is one.',
  reads: 'What a trajectory read, with the reasoning that followed.',
  rollout: 'One attempt of a policy at one instance. Its token list is the truth; texts are views of it.',
  step: 'One update of the adapter.',
  score: 'How good one answer is.',
  table: 'Figures of several retrievers side by side.',
  run: 'Begins what a stage writes: command, version, deciding options, seed. Its id is the same for the same command on any machine.',
  end: 'Closes what a stage writes: counts, whether the input was read to its end and every stage before was well (ok), and the digest of the input.',
  barrier: 'Ends the groups of one on-policy step. Every stage passes it on after all that stands before it.',
  fault: 'Stands for a record that failed, with --keep-going.',
}

type Schema = {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  prefixItems?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
}

/** The page cg-record(5): what stands in a stream, rendered from the schemas. */
export function recordPage(): string {
  return [
    header('cg-record', 5, version),
    section('name', 'cg\\-record \\- what the cg commands read and write\n'),
    section('description', stream()),
    section(
      'kinds',
      (Object.keys(schemas) as Kind[])
        .map(kind => subsection(kind, paragraph(kindTexts[kind]) + fields(kindSchema(kind) as Schema)))
        .join(''),
    ),
    section(
      'error codes',
      Object.entries(codes)
        .map(([code, meaning]) => entry(code, meaning))
        .join(''),
    ),
    section('see also', `${roff('cg-worktree(1), cg-mine(1), cg-judge(1), cg-rollout(1), cg-reward(1), cg-train(1), cg-eval(1)')}\n`),
  ].join('')
}

function stream(): string {
  return [
    'A stream is UTF-8 text with one JSON object a line; kind and v (a whole number, 1 so far) say what it is. Lines end with LF or CRLF, the last one with or without; blank lines do not count. A file may also be one JSON array, and be packed with gzip. Of a name that stands twice in an object the last value counts.',
    'A command works on the kinds that it reads. Every other line passes as the bytes it was, in place. Fields that cg does not know stay in the records it writes again; whole numbers in them keep all their digits.',
    'Paths are relative to the repository, with /. Lines are counted from 1, ranges include both ends. Numbers are finite, 64-bit ids are strings. An id is the sha256 of kind, parents and deciding options. What a clock measured stands under timing, and is the only thing that differs between two runs of the same work.',
    'Rollouts of a group stand next to each other. A group is complete when it has group.size members, at a barrier, at the end of the input, or when another group begins. A group that comes back is an error.',
    'Every stage begins its output with a run record and closes it with an end record, between which those of the stages before it stand. A run without end, an end with ok false, or a last line that is cut off while a run is open is an early end: it is said, and the stage does not call itself ok. Rows without any run are never refused.',
  ]
    .map(paragraph)
    .join('')
}

function fields({ properties = {}, required = [] }: Schema): string {
  return Object.entries(properties)
    .map(([name, schema]) => `.TP\n\\fB${roff(name)}\\fR${required.includes(name) ? '' : roff(' (optional)')}\n${roff(describe(schema))}\n`)
    .join('')
}

/** A type in words, one level deep: `list of {path, start, end}`. */
function describe(schema: Schema): string {
  if (Array.isArray(schema.type)) return schema.type.map(type => describe({ ...schema, type })).join(' or ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  if (schema.anyOf) return schema.anyOf.map(describe).join(' or ')
  if (schema.prefixItems) return `[${schema.prefixItems.map(describe).join(', ')}]`
  if (schema.type === 'array') return `list of ${schema.items ? describe(schema.items) : 'values'}`
  if (schema.properties && Object.keys(schema.properties).length > 0) {
    const names = Object.keys(schema.properties).map(name => (schema.required?.includes(name) ? name : `${name}?`))
    return `{${names.join(', ')}}`
  }
  return (
    { integer: 'whole number', boolean: 'true or false', object: 'object', null: 'null' }[schema.type ?? ''] ?? schema.type ?? 'anything'
  )
}
