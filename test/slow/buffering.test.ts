import { join } from 'node:path'
import t from 'tap'
import { prepareGround } from '../kill/on-policy-pipe.js'
import { until } from '../pipeline/proc.js'
import { scratch, startGroup } from '../pipeline/process.js'

t.setTimeout(300_000)

t.test('a filter that holds lines back is told of, while both its neighbours wait', async t => {
  const { dir } = scratch(t)
  const { instances } = await prepareGround(dir, 2)
  const run = join(dir, 'run')
  const holds = `node -e 'let all = ""; process.stdin.on("data", d => { all += d }).on("end", () => process.stdout.write(all))'`
  const { group, done, heard } = startGroup(
    `bin/cg-rollout --policy native:fixtures/model --on-policy ${run} --max-tokens 60 --max-turns 1 ${instances} | ${holds} | bin/cg-reward | ` +
      `bin/cg-train grpo --model fixtures/model --publish ${run} --resume --prompts-per-step 2 -n 2 --steps 2 --lora-rank 4`,
    { CG_CACHE: join(dir, 'cache.db'), CG_STORE: join(dir, 'store') },
  )
  t.ok(
    await until(() => heard().stderr.includes('the trainer waits, and has not seen step 0: something in the pipe buffers'), 120),
    heard().stderr,
  )
  process.kill(-group, 'SIGKILL')
  await done
})
