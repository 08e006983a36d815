import { availableParallelism } from 'node:os'
import { RecordFault } from '../record/fault.js'
import { mapRecords } from '../record/stage.js'
import { clonesIn, listTrees } from '../repo/list.js'
import { type Prepared, prepare } from '../repo/prepare.js'
import { defaultTemplate, templateProblem } from '../repo/source.js'
import { storeDir } from '../repo/store.js'
import { sweepStore } from '../repo/sweep.js'
import { command } from './command.js'
import { option } from './options.js'
import list from './worktree-list.js'
import { storeOption } from './worktree-options.js'
import prune from './worktree-prune.js'
import tool from './worktree-tool.js'
import verify from './worktree-verify.js'

export default command({
  name: 'cg-worktree',
  about: 'make the base commit of every instance readable: one bare clone a repository, one worktree a commit',
  notes: [
    'Each pair of repository and commit is prepared once, however many rows share it; what is there already is left as it is and counts as cached. Several processes may prepare the same store at once.',
    'A source is a URL (https, ssh, git, file), HOST:PATH, or a local path, with {repo} for OWNER/NAME, {owner} and {name}. Nothing of a repository is run: hooks, filters and monitors are off. With a --source, git gets your home directory and ssh agent, and with --git-config your configuration; it has no terminal to ask on, so a key with a passphrase has to be in the agent. HTTPS_PROXY is honoured.',
  ],
  reads: ['instance'],
  writes: ['instance'],
  jobs: 8,
  options: {
    source: option.string(undefined, `where repositories are cloned from; default ${defaultTemplate}`, {
      metavar: 'TEMPLATE',
      check: templateProblem,
      decides: false,
    }),
    store: storeOption,
    'no-checkout': option.flag('do not write the files yet: the first command that reads a tree does', { decides: false }),
    'clone-timeout': option.number(600, 'longest time for one clone or fetch', { min: 1, metavar: 'SEC', decides: false }),
    'git-config': option.flag("let git read your and the system's configuration when it clones and fetches", { decides: false }),
  },
  examples: [
    ['prepare the trees of a data set', 'cg-worktree -j 8 < instances.ndjson > prepared.ndjson'],
    ['from a mirror on this machine', "cg-worktree --source '/srv/mirrors/{owner}/{name}.git' instances.ndjson"],
    ['from a private host', "cg-worktree --source 'git@git.example.org:{repo}.git' instances.ndjson"],
    ['what is in the store', 'cg-worktree list'],
    ['free what was not used for 30 days', 'cg-worktree prune --older-than 30d'],
  ],
  subcommands: { list, prune, verify, tool },

  async *run(input, options, context) {
    const store = storeDir(options.store)
    await sweepStore(store)
    const pairs = new Map<string, Promise<Prepared>>()
    let prepared = 0
    const once = (repo: string, commit: string) => {
      const key = `${repo}\0${commit}`
      const known = pairs.get(key)
      if (known) return known
      const made = prepare(repo, commit, {
        store,
        ...(options.source === undefined ? {} : { source: options.source }),
        checkout: !options['no-checkout'],
        timeoutMs: options['clone-timeout'] * 1000,
        gitConfig: options['git-config'],
        signal: context.signal,
      })
      pairs.set(key, made)
      made.then(
        ({ cached }) => {
          context.progress(++prepared, undefined, `trees, last of ${repo}`)
          context.detail(`${repo} ${commit.slice(0, 12)}: ${cached ? 'was there' : 'prepared'}`)
        },
        () => {},
      )
      return made
    }

    yield* mapRecords(input, 'instance', { jobs: context.jobs, context }, async instance => {
      try {
        const { worktree, cached } = await once(instance.repo, instance.base_commit)
        if (cached) context.count.cached++
        return { ...instance, worktree }
      } catch (error) {
        // Rows that share a pair share its failure, but each is a fault of its own line.
        throw error instanceof RecordFault ? new RecordFault(error.code, error.message, error.retry) : error
      }
    })
  },

  async plan(options) {
    const store = storeDir(options.store)
    return [
      `store: ${store}, ${clonesIn(store).length} clones and ${listTrees(store).length} worktrees`,
      `source: ${options.source ?? defaultTemplate}, at most ${options['clone-timeout']} s for a clone or fetch`,
      options['no-checkout'] ? 'objects only, no files' : 'files of every commit',
      `git ${options['git-config'] ? 'reads your configuration' : 'reads no configuration of yours'}; ${availableParallelism()} cores`,
    ]
  },
})
