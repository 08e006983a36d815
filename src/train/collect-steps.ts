import { canonical, sha256 } from '../record/canonical.js'
import { FatalError, RecordFault, UsageError } from '../record/fault.js'
import { groups } from '../record/groups.js'
import type { Foreign, Item, Known } from '../record/item.js'
import type { Barrier } from '../record/schema.js'

export type StepGroup = {
  /** Place in the step: which leaf of the gradient's reduction tree. */
  index: number
  /** Members asked for; fewer may have arrived. */
  size: number
  rollouts: Known<'rollout'>[]
}

/** The rollouts of one optimiser step. */
export type StepRows = {
  kind: 'step'
  /** From 0. */
  step: number
  groups: StepGroup[]
  /** Rollouts that were asked for, dropped and faulty ones included: what means over rollouts divide by. */
  asked: number
  /** Of what the step was made from: the barrier's digest, else that of the rollout ids. */
  digest: string
  /** Only a barrier came: an earlier run of the pipe has trained this step. */
  replayed: boolean
  /** It comes from the rollout stage of this very run, which ends by itself. */
  onPolicy: boolean
}

export type CollectPlan = {
  promptsPerStep: number
  /** Prompts a step as the user said them; a barrier that disagrees is an error. */
  promptsStated?: number | undefined
  /** Rollouts a prompt as the user said them; a group that disagrees is an error. */
  samplesStated?: number | undefined
  /** What a group of which nothing arrived counts for. */
  samplesPerPrompt: number
  lag: number
  /** Rollouts that name this run are on-policy: each must come from version max(0, step − lag). */
  runId: string
  allowPartial: boolean
  /** Did every upstream stage end well? Asked at the end of the input. */
  cleanEnd(): boolean
  /** Interrupted: what has arrived of a step is dropped. */
  aborted(): boolean
  warn(message: string): void
  /** Told of every barrier when it is read. */
  onBarrier?(): void
}

/**
 * Cuts a stream of rollouts into optimiser steps: up to a barrier, else P prompts by group (stream contract, "Groups and barriers").
 *
 * Lines that are neither pass through in place. Throws RecordFault E_BARRIER, E_GROUP, E_STALE with the line where the stream contradicts itself, the options
 * or the run; FatalError E_EARLY_END when the input ended early, after the whole steps: a partial one is dropped then, unless `allowPartial`.
 */
export async function* collectSteps(input: AsyncIterable<Item>, plan: CollectPlan): AsyncGenerator<StepRows | Foreign> {
  let open: StepGroup[] = []
  let step = 0
  let lastBarrier: Barrier | undefined
  let onPolicy = false
  /** Sampled on-policy, by this run or another: barriers will come, and counting closes no step. */
  let awaitsBarrier = false
  /** A whole step that is smaller than the user said: only the last one may be. */
  let small: { barrier: Known<'barrier'>; rows: StepRows | undefined } | undefined

  const close = (digest: string, asked: number, replayed = false): StepRows => {
    const rows: StepRows = { kind: 'step', step: step++, groups: open, asked, digest, replayed, onPolicy: onPolicy || replayed }
    open = []
    return rows
  }

  for await (const found of groups(input, plan.warn)) {
    if (small && (found.kind === 'group' || found.kind === 'barrier')) throw contradicts(small.barrier, plan)
    if (found.kind === 'group') {
      if (open.length === plan.promptsPerStep && lastBarrier === undefined && !awaitsBarrier) yield closeCounted(open, close)
      const first = found.rollouts[0]!
      const { size, index } = first.record.group
      if (plan.samplesStated !== undefined && size !== plan.samplesStated)
        throw at(first, 'E_GROUP', `a group of ${size} rollouts, and --samples-per-prompt says ${plan.samplesStated}: leave the option out`)
      for (const member of found.rollouts) {
        const { run_id } = member.record.policy
        awaitsBarrier ||= run_id === plan.runId || (run_id !== undefined && plan.promptsStated === undefined)
        if (run_id !== plan.runId) continue
        onPolicy = true
        checkVersion(member, step, plan.lag)
      }
      if (onPolicy && plan.allowPartial)
        throw new UsageError('--allow-partial is for files: an on-policy run that is cut goes on with the same command and --resume')
      open.push({ index, size, rollouts: found.rollouts })
    } else if (found.kind === 'barrier') {
      const barrier = found.record
      checkStep(found, lastBarrier, step, onPolicy || barrier.replayed === true)
      checkGroups(found, open)
      lastBarrier = barrier
      plan.onBarrier?.()
      const size = open[0]?.size ?? plan.samplesStated ?? plan.samplesPerPrompt
      if (plan.promptsStated !== undefined && barrier.groups > plan.promptsStated) throw contradicts(found, plan)
      const rows = close(barrier.digest, barrier.groups * size, barrier.replayed ?? false)
      const isSmall = plan.promptsStated !== undefined && barrier.groups < plan.promptsStated
      // on-policy the next rollouts wait for this step, so nothing can show yet whether it is the last
      if (isSmall) small = { barrier: found, rows: onPolicy ? undefined : rows }
      if (small?.rows === undefined) yield rows
    } else if (found.kind === 'foreign') yield found
  }

  if (small?.rows) yield small.rows
  if (plan.aborted()) return
  const clean = plan.cleanEnd()
  // the barriers that were awaited were taken out on the way
  for (const rest = open; lastBarrier === undefined && rest.length > plan.promptsPerStep; ) {
    open = rest.splice(0, plan.promptsPerStep)
    yield closeCounted(open, close)
    open = rest
  }
  const whole = open.length === plan.promptsPerStep && open.every(group => group.rollouts.length === group.size)
  const trained = !onPolicy && (clean || plan.allowPartial || (whole && lastBarrier === undefined))
  if (open.length > 0 && trained) yield closeCounted(open, close)
  const dropped = open.length
  if ((clean || plan.allowPartial) && dropped === 0) return
  throw new FatalError(
    'E_EARLY_END',
    `the input ended early${dropped > 0 ? `, within a step: its ${dropped} groups were dropped` : ''}; ` +
      'run the same command again with --resume, or take what there is with --allow-partial (files only)',
  )
}

/** Closes a step that no barrier marks: groups are numbered as they came. */
function closeCounted(open: StepGroup[], close: (digest: string, asked: number) => StepRows): StepRows {
  open.forEach((group, index) => {
    group.index = index
  })
  const ids = open.flatMap(group => group.rollouts.map(({ record }) => record.id))
  return close(
    sha256(canonical(ids)),
    open.reduce((sum, group) => sum + group.size, 0),
  )
}

function checkVersion(member: Known<'rollout'>, step: number, lag: number): void {
  const wanted = Math.max(0, step - lag)
  const { version } = member.record.policy
  if (version === wanted) return
  throw at(
    member,
    'E_STALE',
    `a rollout of policy version ${version ?? '(none)'} in step ${step}, which takes version ${wanted} (lag ${lag}): give cg-rollout this run's directory with --on-policy`,
  )
}

/** Steps count up by one. Files that were joined may begin again at 0, and one cut by tail may begin anywhere: not so the pipe of this run. */
function checkStep(item: Known<'barrier'>, last: Barrier | undefined, step: number, exact: boolean): void {
  const { step: said } = item.record
  if (exact ? said === step : last === undefined || said === last.step + 1 || said === 0) return
  const expected = exact ? step : last!.step + 1
  throw at(
    item,
    'E_BARRIER',
    `the barrier of step ${said} where that of step ${expected} was due: rows were lost, doubled or sorted on the way`,
  )
}

function checkGroups(item: Known<'barrier'>, open: readonly StepGroup[]): void {
  const { groups: said, step, replayed } = item.record
  if (replayed && open.length > 0) throw at(item, 'E_BARRIER', `step ${step} is said to be replayed, and rollouts came for it`)
  if (open.length > said)
    throw at(item, 'E_BARRIER', `the barrier of step ${step} says ${said} groups, and ${open.length} came: keep the rows in order`)
  const seen = new Set<number>()
  for (const { index, size, rollouts } of open) {
    const first = rollouts[0]!
    if (index >= said) throw at(first, 'E_GROUP', `group index ${index} in a step of ${said} groups`)
    if (seen.has(index)) throw at(first, 'E_GROUP', `two groups with index ${index} in step ${step}`)
    if (size !== open[0]!.size) throw at(first, 'E_GROUP', `a group of ${size} rollouts in a step of groups of ${open[0]!.size}`)
    seen.add(index)
  }
}

function contradicts(item: Known<'barrier'>, plan: CollectPlan): RecordFault {
  const { step, groups: said } = item.record
  return at(
    item,
    'E_BARRIER',
    `step ${step} has ${said} groups, and --prompts-per-step says ${plan.promptsStated}: leave the option out, the input has barriers`,
  )
}

function at(item: Known, code: string, message: string): RecordFault {
  const fault = new RecordFault(code, message)
  fault.origin = item.origin
  return fault
}
