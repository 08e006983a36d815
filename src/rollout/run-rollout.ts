import type { ChatThread } from '../model/chat-thread.js'
import { noAnswer, parseAnswer } from '../model/parse-answer.js'
import { type ParsedCall, parseCalls } from '../model/parse-calls.js'
import { appendGenerated, appendObserved, openTranscript, type Transcript } from '../model/transcript.js'
import type { Message, Policy, TurnReply } from '../policy/policy.js'
import { shortestFloat32 } from '../record/round.js'
import type { Call, Instance, Rollout, Turn } from '../record/schema.js'
import type { Tree } from '../tools/tree.js'
import type { RolloutSettings } from './settings.js'

/** What a rollout adds to its instance; ids and provenance come from `sampleGroup`. */
export type Played = Pick<Rollout, 'turns' | 'answer' | 'tokens' | 'usage' | 'timing' | 'stop' | 'fault' | 'tool_timeouts'>

export type Asked = {
  id: string
  sample: number
  instance: Instance
  tree: Tree
  policy: Policy
  /** The model's way with words, for policies that work on tokens. */
  chat?: ChatThread | undefined
  settings: RolloutSettings
  signal?: AbortSignal | undefined
  /** Told of every turn as it ends, for people who watch. */
  watch?: ((turn: Turn) => void) | undefined
}

/**
 * One rollout: the policy takes turns, its calls are run together, the results go back, until it answers or a limit ends it (protocol; CodeGrep, appendix A.1).
 *
 * Stops: `answer`; `no-call` (a turn with neither call nor answer); `turns` (the last allowed turn did not answer; its calls are not run); `length` (a turn or
 * the rollout used up its tokens: no answer, whatever the cut turn holds); `context` (no room for the next turn or its observations). Rejects when the policy
 * or a tool fails.
 */
export async function runRollout(asked: Asked): Promise<Played> {
  const { policy, settings, chat } = asked
  const { limits, protocol } = settings
  const messages: Message[] = protocol.open(asked.instance, limits.issueChars) as Message[]
  const transcript = policy.tokens ? openTranscript(await opened(chat, messages, settings)) : undefined
  const state: State = { messages, transcript, turns: [], generated: 0, prompt: transcript?.ids.length ?? 0, toolMs: 0, timeouts: 0 }
  const began = performance.now()
  let answer = noAnswer
  let stop: Rollout['stop'] | undefined

  for (let turn = 0; stop === undefined; turn++) {
    const room = transcript ? limits.context - transcript.ids.length : Number.POSITIVE_INFINITY
    const left = Math.min(limits.maxTokens - state.generated, limits.turnTokens)
    if (room <= 0 || left <= 0) {
      stop = room <= 0 ? 'context' : 'length'
      break
    }
    const last = turn === limits.maxTurns - 1
    const reply = await submit(asked, state, turn, last, Math.min(room, left))
    const found = reply.stop === 'stop' ? parseAnswer(reply.text) : undefined
    const calls = parseCalls(reply.text)
    const ends = ending(reply, room < left, found !== undefined, calls.length, last)
    if (found) answer = found
    const run = ends === undefined ? await runCalls(asked, state, calls, turn) : calls.map((call, i) => notRun(call, turn, i, null))
    const record: Turn = { text: reply.text, calls: run, tokens: reply.ids?.length ?? reply.usage?.generated ?? 0, stop: reply.stop }
    state.turns.push(record)
    asked.watch?.(record)
    stop = ends ?? (await observe(asked, state, run))
  }
  return played(state, answer, stop!, policy, performance.now() - began)
}

type State = {
  messages: Message[]
  transcript: Transcript | undefined
  turns: Turn[]
  generated: number
  prompt: number
  toolMs: number
  timeouts: number
}

async function opened(chat: ChatThread | undefined, messages: Message[], { protocol, toolset }: RolloutSettings): Promise<number[]> {
  if (!chat) throw new TypeError('a policy that works on tokens needs its model’s tokenizer')
  return chat.open(messages, protocol.toolsBlock ? toolset.tools.map(schemaOf) : null)
}

/** A tool as chat templates take it (the form of OpenAI's function tools). */
export function schemaOf({ name, description, parameters }: RolloutSettings['toolset']['tools'][number]) {
  return { type: 'function', function: { name, description, parameters } }
}

async function submit(asked: Asked, state: State, turn: number, last: boolean, maxTokens: number): Promise<TurnReply> {
  const { policy, settings, id, sample, instance, tree, signal } = asked
  const { transcript, messages } = state
  const reply = await policy.submit({
    rollout: id,
    turn,
    last,
    maxCalls: settings.limits.maxCalls,
    instance,
    sample,
    tree,
    messages,
    ...(transcript ? { ids: Int32Array.from(transcript.ids) } : {}),
    maxTokens,
    sampling: settings.sampling,
    seed: BigInt(settings.seed),
    ...(signal ? { signal } : {}),
  })
  messages.push({ role: 'assistant', content: reply.text })
  if (transcript) appendGenerated(transcript, turn, reply.ids ?? [], reply.logprobs ?? [])
  state.generated += reply.ids?.length ?? reply.usage?.generated ?? 0
  if (turn === 0 && !transcript) state.prompt = reply.usage?.prompt ?? 0
  return reply
}

/** Why the rollout ends with this turn; undefined: it goes on. */
function ending(reply: TurnReply, contextIsShorter: boolean, answered: boolean, calls: number, last: boolean): Rollout['stop'] | undefined {
  if (reply.stop === 'length') return contextIsShorter ? 'context' : 'length'
  if (answered) return 'answer'
  if (calls === 0) return 'no-call'
  return last ? 'turns' : undefined
}

/** Runs the calls of a turn together; those beyond the limit are answered that they were not run. */
async function runCalls({ settings, tree, signal }: Asked, state: State, calls: ParsedCall[], turn: number): Promise<Call[]> {
  const { maxCalls } = settings.limits
  const began = performance.now()
  const run = await Promise.all(
    calls.map(async (call, i): Promise<Call> => {
      if (i >= maxCalls) return notRun(call, turn, i, `[not run: ${maxCalls} calls a turn]`)
      const { text, status, truncated } = call.bad
        ? await settings.runner.call(tree, '', null, signal)
        : await settings.runner.call(tree, call.name, call.arguments, signal)
      if (status === 'timeout') state.timeouts++
      return { ...written(call, turn, i), status, observation: text, truncated }
    }),
  )
  state.toolMs += performance.now() - began
  return run
}

function notRun(call: ParsedCall, turn: number, index: number, observation: string | null): Call {
  return { ...written(call, turn, index), status: 'not-run', observation, truncated: false }
}

function written(call: ParsedCall, turn: number, index: number): Pick<Call, 'id' | 'name' | 'arguments'> {
  const id = `${turn}.${index}`
  if (call.bad) return { id, name: '', arguments: call.text }
  const { arguments: given } = call
  const object = typeof given === 'object' && given !== null && !Array.isArray(given)
  return { id, name: call.name, arguments: object ? (given as Record<string, unknown>) : JSON.stringify(given) }
}

/** Appends the results; `context` when they do not fit with at least one token to go on with. */
async function observe({ settings, chat }: Asked, { messages, transcript }: State, calls: Call[]): Promise<'context' | undefined> {
  const results = calls.map(call => call.observation ?? '')
  for (const content of results) messages.push({ role: 'tool', content })
  if (!transcript) return undefined
  const ids = await chat!.continue(results)
  if (transcript.ids.length + ids.length >= settings.limits.context) return 'context'
  appendObserved(transcript, ids)
  return undefined
}

function played(state: State, answer: Rollout['answer'], stop: Rollout['stop'], policy: Policy, ms: number): Played {
  const { transcript, turns, generated, prompt, toolMs, timeouts } = state
  const answering = stop === 'answer' ? turns.slice(0, -1) : turns
  const calls = answering.reduce((sum, turn) => sum + turn.calls.length, 0)
  const tokens = transcript && {
    ids: transcript.ids,
    spans: transcript.spans,
    logprobs: transcript.logprobs.map(shortestFloat32),
    logprob_kind: policy.logprobKind ?? 'unknown',
  }
  return {
    turns,
    answer,
    ...(tokens ? { tokens } : {}),
    usage: { prompt, generated, calls, turns: turns.length },
    stop,
    timing: { seconds: Math.round(ms) / 1000, tool_seconds: Math.round(toolMs) / 1000 },
    ...(timeouts > 0 ? { tool_timeouts: timeouts } : {}),
  }
}
