import t from 'tap'
import { killCommand } from '../kill/command.js'
import { commandJobs } from '../kill/command-jobs.js'
import { countingServer } from '../kill/command-server.js'
import { scratch } from './process.js'

t.setTimeout(280_000)

// The long form, with many moments each, is test/slow/kill-commands.test.ts.
t.test('each command, killed at some moment and run again, ends as if it had not been', async t => {
  const { dir } = scratch(t)
  const { place, jobs } = commandJobs(dir, await countingServer(t))
  for (const [seed, job] of jobs.entries()) t.same((await killCommand(job, place, { kills: 1, seed })).failures, [], job.name)
})
