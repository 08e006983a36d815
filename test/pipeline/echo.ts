import { setTimeout as sleep } from 'node:timers/promises'
import { command, option } from '#cg/cli/command.js'
import { main } from '#cg/cli/runner.js'
import { RecordFault, UsageError } from '#cg/record/fault.js'
import { textLine } from '#cg/record/item.js'
import type { Instance } from '#cg/record/schema.js'
import { mapRecords } from '#cg/record/stage.js'

/** A small command for tests, run by the real runner: adds `echo` to instances, and fails or waits as it is told. */
const echo = command({
  name: 'cg-echo',
  about: 'add a word to every instance',
  notes: ['For tests.'],
  reads: ['instance'],
  writes: ['instance'],
  options: {
    word: option.string('hello', 'what is added'),
    size: option.integer(1, 'how often', { min: 1, max: 1_000_000 }),
    fail: option.list('ids of instances that fail'),
    break: option.string(undefined, 'id of an instance at which the command breaks', { decides: false }),
    wait: option.number(0, 'milliseconds that each instance takes', { min: 0, decides: false }),
    memo: option.flag('keep results in the cache'),
    style: option.choice(['plain', 'loud'], 'plain', 'how the word is said'),
    scratch: option.string(undefined, 'a directory that is not used', { metavar: 'DIR' }),
    alone: option.flag('read nothing', { decides: false }),
    refuse: option.flag('find the options wrong when it is late', { decides: false }),
  },
  standalone: options => options.alone,
  examples: [['say hello', 'cg-echo instances.jsonl']],

  async *run(input, options, context) {
    if (options.refuse) throw new UsageError('--refuse: these options do not go together')
    let done = 0
    const word = (options.style === 'loud' ? options.word.toUpperCase() : options.word).repeat(options.size)
    yield* mapRecords(input, 'instance', { jobs: context.jobs, context }, async (record: Instance) => {
      const key = { stage: 'echo', version: 1, id: record.instance_id, word }
      const known = options.memo ? context.cache.get(key) : undefined
      if (known !== undefined) {
        context.count.cached++
        return { ...record, echo: known }
      }
      if (options.wait > 0) await sleep(options.wait)
      if (options.fail.includes(record.instance_id))
        throw new RecordFault('E_COMMIT_MISSING', `${record.repo} has no such commit: check base_commit`)
      if (options.break === record.instance_id) throw new TypeError('x is not a function')
      if (options.memo) context.cache.put(key, word)
      context.progress(++done, undefined, record.instance_id)
      return { ...record, echo: word }
    })
    if (options.alone) yield textLine('alone')
    context.detail(`clean end: ${context.cleanEnd()}`)
  },

  subcommands: {
    list: command({
      name: 'cg-echo list',
      about: 'list words',
      reads: [],
      writes: [],
      standalone: true,
      positionals: [
        { name: 'FIRST', about: 'the first word' },
        { name: 'REST', about: 'more words', many: true, optional: true },
      ],
      options: { reverse: option.flag('the last first') },
      examples: [],
      async *run(_, options, context) {
        const words = [...context.args.FIRST!, ...context.args.REST!]
        for (const word of options.reverse ? words.reverse() : words) yield textLine(word)
      },
    }),
  },
})

await main(Promise.resolve({ default: echo }))
