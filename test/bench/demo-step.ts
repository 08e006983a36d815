import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import type { Adapter, LoraTarget, Model, Precision, TrainGroup } from '#cg/engine/types.js'
import { groups } from '#cg/record/groups.js'
import type { Known } from '#cg/record/item.js'
import { readRecords } from '#cg/record/read.js'
import type { Rollout } from '#cg/record/schema.js'
import { denominators } from '#cg/train/denominators.js'
import { defaultRowsPerPass } from '#cg/train/memory-estimate.js'
import { readModelShape } from '#cg/train/model-shape.js'
import { recipes } from '#cg/train/recipes.js'
import { policySequence } from '#cg/train/sequence.js'
import { type Bench, benchDirectory, type Say } from './bench.js'
import { cpuSeconds } from './cpu-seconds.js'
import { type DemoRollouts, demoModel, demoRollouts } from './demo-rollouts.js'
import { compared, type Figure } from './figure.js'
import { interleave } from './interleave.js'
import { machine } from './machine.js'
import { type Peer, withPeer } from './peer.js'
import { python } from './python.js'

const recipe = recipes['codegrep-tiny']!.grpo!
const targets: LoraTarget[] = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
const lora = { rank: recipe.loraRank!, alpha: recipe.loraAlpha!, targets }
/** Rollouts a backward pass of TRL: its default. */
const microBatch = 8
const target = { fp32: 4, bf16: 6 }
const loss = { kind: 'policy', cispoCap: 5, klBiasCorrection: false, maxCompletionLength: 4096 } as const

/**
 * The demo's GRPO step against TRL's own trainer with PEFT, in CPU seconds of one thread: from rollouts as token lists to an updated adapter, reference log-probs, loss,
 * backward, clipping and AdamW, on both sides; see peers/trl_step.py for what runs there. Advantages are TRL's: rewards, normalised within their group. The
 * gradients' norms are compared.
 */
export const demoStep: Bench = async function* (say) {
  const rollouts = await demoRollouts(say)
  const program = await python('trainer', say)
  const { features } = await machine()
  yield await stepIn('fp32', rollouts, program, say)
  if (features.includes('avx512bf16')) yield await stepIn('bf16', rollouts, program, say)
  else say('bf16: this CPU has no instruction for it')
}

async function stepIn(dtype: Precision, { file, adapter: sampledWith }: DemoRollouts, program: string, say: Say): Promise<Figure> {
  const step = await readStep(file)
  const scratch = join(benchDirectory, 'demo-step')
  const fresh = join(scratch, 'fresh')
  rmSync(scratch, { recursive: true, force: true })
  mkdirSync(fresh, { recursive: true })
  const model = await loadEngine().loadModel(demoModel, { backend: 'cpu', threads: 1, dtype })
  try {
    if (sampledWith === null) await (await model.newAdapter(lora, 0n)).save(fresh)
    const start = sampledWith ?? fresh
    const job = join(scratch, 'job.json')
    writeFileSync(job, JSON.stringify(trlJob(step, dtype, start, sampledWith === null)))
    const adapter = await model.loadAdapter(start)
    const reference = sampledWith === null ? null : await model.loadAdapter(start)
    return await withPeer(program, 'trl_step.py', [job], peer => race(step, { model, adapter, reference }, peer, dtype, say))
  } finally {
    model.dispose()
  }
}

/** What our side trains: the adapter, and what KL is measured from (null: the base model). */
type Ours = { model: Model; adapter: Adapter; reference: Adapter | null }

async function race(step: Row[][], { model, adapter, reference }: Ours, peer: Peer, dtype: Precision, say: Say): Promise<Figure> {
  const tokens = step.flat().reduce((sum, { record }) => sum + record.tokens!.ids.length, 0)
  say(`${dtype}: ${peer.name} and ${model.info.device}; ${step.length} × ${step[0]!.length} rollouts, ${tokens} tokens`)
  const trainer = model.trainer(adapter, { beta1: recipe.beta1!, beta2: recipe.beta2!, eps: 1e-8, weightDecay: recipe.weightDecay! })
  const limits = { realVocab: model.info.realVocab, maxPositions: model.info.maxPositions }
  const options = {
    loss: { ...loss, aggregation: recipe.aggregation!, epsilonLow: recipe.epsilonLow!, epsilonHigh: recipe.epsilonHigh!, kl: recipe.kl! },
    klAdapter: reference,
    // every step is the same step
    lr: 0,
    clip: recipe.clip!,
    maxRowsPerPass: defaultRowsPerPass(readModelShape(demoModel), lora),
  }
  let gradNorm = Number.NaN
  const seconds = await interleave(
    {
      ours: () =>
        cpuSeconds(async () => {
          const batch: TrainGroup[] = step.map((rows, index) => ({ index, sequences: rows.map(row => policySequence(row, limits)!) }))
          gradNorm = (await trainer.train({ ...options, groups: batch, denominators: denominators(step.flat().length, batch) })).gradNorm
        }),
      peer: async () => {
        const answer = await peer.ask<{ seconds: number; grad_norm: number }>({})
        say(`norm of the gradient: ours ${gradNorm.toPrecision(5)}, the peer's ${answer.grad_norm.toPrecision(5)}`)
        if (dtype === 'fp32' && !(Math.abs(gradNorm / answer.grad_norm - 1) < 1e-2))
          throw new Error('the two sides do not compute the same step')
        return answer.seconds
      },
    },
    say,
  )
  trainer.dispose()
  return compared({
    bench: 'demo-step',
    what: dtype,
    unit: 's',
    ours: seconds.ours,
    peer: seconds.peer,
    peerName: peer.name,
    better: 'less',
    target: target[dtype],
  })
}

type Row = Known<'rollout'>

/** The rollouts by group, with TRL's advantages. */
async function readStep(file: string): Promise<Row[][]> {
  const step: Row[][] = []
  for await (const found of groups(readRecords(file, ['rollout']))) {
    if (found.kind !== 'group') continue
    const rewards = found.rollouts.map(({ record }) => record.reward!)
    const mean = rewards.reduce((a, b) => a + b) / rewards.length
    const deviation = Math.sqrt(rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / (rewards.length - 1))
    step.push(found.rollouts.map((row, i) => ({ ...row, record: { ...row.record, advantage: (rewards[i]! - mean) / (deviation + 1e-4) } })))
  }
  return step
}

function trlJob(step: Row[][], dtype: Precision, adapter: string, fresh: boolean): object {
  return {
    model: demoModel,
    adapter,
    fresh,
    bf16: dtype === 'bf16',
    temperature: step[0]![0]!.record.sampling.temperature,
    beta: recipe.kl,
    micro_batch: microBatch,
    config: { r: lora.rank, lora_alpha: lora.alpha, target_modules: lora.targets },
    groups: step.map(rows => rows.map(({ record }) => trlRow(record))),
  }
}

/** Prompt and completion as TRL has them: everything from the first generated token on, tools' answers masked. */
function trlRow({ tokens, reward }: Rollout): object {
  const { ids, spans } = tokens!
  const begin = spans[0]![0]
  const generated: number[] = Array(ids.length - begin).fill(0)
  for (const [from, to] of spans) generated.fill(1, from - begin, to - begin)
  return { prompt: ids.slice(0, begin), completion: ids.slice(begin), generated, reward }
}
