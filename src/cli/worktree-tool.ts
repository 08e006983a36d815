import { availableParallelism } from 'node:os'
import { RecordFault, UsageError } from '../record/fault.js'
import { readRecords } from '../record/read.js'
import type { Instance } from '../record/schema.js'
import { storeDir } from '../repo/store.js'
import { createToolRunner } from '../tools/call.js'
import { openTree } from '../tools/open-tree.js'
import { repositoryTree } from '../tools/repository-tree.js'
import type { Tree } from '../tools/tree.js'
import { type Context, command } from './command.js'
import { type OptionValues, option } from './options.js'
import { printed } from './print-lines.js'
import { toolOptions, toolsetOf } from './tool-options.js'
import { counted, storeOption } from './worktree-options.js'

const options = {
  store: storeOption,
  repo: option.string(undefined, 'the repository at or above this directory, at its HEAD', { metavar: 'PATH' }),
  instance: option.string(undefined, 'a prepared instance: the first row of this file, or the one of --id', { metavar: 'FILE' }),
  id: option.string(undefined, 'with --instance: instance_id of the row', { metavar: 'ID' }),
  ...toolOptions,
}

export default command({
  name: 'cg-worktree tool',
  about: 'run one tool call by hand and print what a model would see',
  reads: [],
  writes: [],
  standalone: true,
  positionals: [
    { name: 'NAME', about: 'the tool: grep, glob or read' },
    { name: 'JSON', about: 'its arguments, e.g. {"pattern": "def main"}' },
  ],
  options,
  examples: [
    ['search this repository', `cg-worktree tool grep '{"pattern": "TODO", "glob": "*.py"}' --repo .`],
    ['read from an instance', `cg-worktree tool read '{"path": "setup.py"}' --instance prepared.ndjson --id acme__lib-12`],
  ],

  async *run(_, options, context) {
    const [name, json] = [context.args.NAME![0]!, context.args.JSON![0]!]
    const tree = await treeOf(options, context)
    const runner = createToolRunner({ toolset: toolsetOf(options), cache: context.cache, cores: availableParallelism() })
    const { text, status } = await runner.call(tree, name, argumentsOf(json), context.signal)
    context.detail(`status ${status}`)
    yield printed(text)
  },
})

async function treeOf({ store, repo, instance, id }: OptionValues<typeof options>, context: Context): Promise<Tree> {
  if ((repo === undefined) === (instance === undefined)) throw new UsageError('say where: --repo PATH, or --instance FILE')
  if (instance !== undefined) return openTree(await findInstance(instance, id), context.signal)
  const { tree, uncommitted } = await repositoryTree(repo!, storeDir(store), context.signal)
  if (uncommitted > 0) context.say(`${repo}: ${counted(uncommitted, 'uncommitted path')} not seen: the tools read HEAD`)
  return tree
}

async function findInstance(file: string, id: string | undefined): Promise<Instance> {
  for await (const item of readRecords(file, ['instance']))
    if (item.kind === 'instance' && (id === undefined || item.record.instance_id === id)) return item.record
  throw new RecordFault('E_INSTANCE', `${file}: ${id === undefined ? 'no instance in it' : `no instance ${id} in it`}`)
}

function argumentsOf(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new UsageError(`JSON is not JSON: ${(error as Error).message}: quote it, e.g. '{"pattern": "x"}'`)
  }
}
