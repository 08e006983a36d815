import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { records } from './process.js'

type Step = { kind: string; step: number; version: number; grad_norm: number; zero_variance: number; groups: number }

/** Tests that a run directory holds what a run of so many steps leaves, and nothing else, and that most steps had something to learn. Returns the steps. */
export function testRunDirectory(t: Test, run: string, count: number): Step[] {
  const steps = records(readFileSync(join(run, 'steps.ndjson'), 'utf8')) as unknown as Step[]
  t.equal(steps.length, count, 'a line a step')
  t.equal(
    steps.findIndex(({ step, version }, k) => step !== k || version !== k + 1),
    -1,
    'in order',
  )
  const printed = records(readFileSync(`${run}.steps`, 'utf8')).filter(({ kind }) => kind === 'step')
  t.same(printed, steps, 'the output has the same records')
  t.ok(steps.filter(({ zero_variance, groups }) => zero_variance < groups).length > count / 3, 'rewards differed within groups')
  t.ok(steps.filter(({ grad_norm }) => grad_norm > 0).length > count / 3, 'and the adapter moved')

  const name = (version: number) => `v${String(version).padStart(6, '0')}`
  t.same(readdirSync(run).sort(), ['run.json', 'steps.ndjson', 'trainer.json', 'upstream.json', name(count - 1), name(count)])
  const content = ['adapter_config.json', 'adapter_model.safetensors', 'cursor.json', 'optimizer.safetensors', 'policy.json', 'step.json']
  for (const version of [count - 1, count]) t.same(readdirSync(join(run, name(version))).sort(), content)
  t.match(JSON.parse(readFileSync(join(run, 'trainer.json'), 'utf8')), { state: 'done', seen: count })
  return steps
}
