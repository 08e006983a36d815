import t from 'tap'
import { killCommand } from '../kill/command.js'
import { commandJobs } from '../kill/command-jobs.js'
import { countingServer } from '../kill/command-server.js'
import { scratch } from './process.js'

t.setTimeout(280_000)

/** One job a command; the long form, test/slow/kill-commands.test.ts, has them all, and many moments each. */
const chosen = ['worktree, clone', 'mine gold', 'judge', 'rollout, server', 'reward', 'train grpo', 'eval score']

t.test('each command, killed at some moment and run again, ends as if it had not been', async t => {
  const { dir } = scratch(t)
  const { place, jobs } = commandJobs(dir, await countingServer(t))
  const short = jobs.filter(({ name }) => chosen.includes(name))
  t.equal(short.length, chosen.length)
  for (const [seed, job] of short.entries()) t.same((await killCommand(job, place, { kills: 1, seed })).failures, [], job.name)
})
