import t from 'tap'
import { killCommand, type Outcome, summary } from '../kill/command.js'
import { commandJobs } from '../kill/command-jobs.js'
import { countingServer } from '../kill/command-server.js'
import { scratch } from '../pipeline/process.js'

t.setTimeout(0)

const kills = Number(process.env.KILLS ?? 100)
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)

t.test(`each command, killed at ${kills} moments, ends as if it had not been (SEED=${seed})`, async t => {
  const { dir } = scratch(t)
  const { place, jobs } = commandJobs(dir, await countingServer(t))
  const outcomes: Outcome[] = []
  for (const job of jobs.filter(({ name }) => name.includes(process.env.ONLY ?? ''))) {
    const outcome = await killCommand(job, place, { kills, seed })
    outcomes.push(outcome)
    t.same(outcome.failures, [], job.name)
    process.stderr.write(`${summary([outcome]).split('\n')[1]}\n`)
  }
  process.stderr.write(`seed ${seed}\n${summary(outcomes)}\n`)
})
