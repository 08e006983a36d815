import type { Item, Known } from '#cg/record/item.js'
import type { Barrier, Rollout } from '#cg/record/schema.js'

export type Made = Partial<Rollout> & { group?: { id: string; size: number; index: number } }

/** A rollout by hand: two turns, tokens 10 … 19 of which [4, 6) and [8, 10) were generated. */
export function madeRollout(over: Made = {}): Rollout {
  return {
    kind: 'rollout',
    v: 1,
    id: 'r0',
    instance_id: 'i0',
    repo: 'o/p',
    base_commit: 'c'.repeat(40),
    problem_statement: 'it breaks',
    group: { id: 'g0', size: 2, index: 0 },
    sample: 0,
    policy: { kind: 'native', name: 'native:m' },
    toolset: 'codegrep',
    protocol: { name: 'brief', digest: 'd' },
    sampling: {
      temperature: 1,
      top_k: 0,
      top_p: 1,
      min_p: 0,
      repetition_penalty: 1,
      max_tokens: 100,
      max_turns: 4,
      max_calls: 8,
      seed: '0',
    },
    turns: [
      { text: 'a', calls: [call('0.0'), call('0.1')], tokens: 2, stop: 'stop' },
      { text: 'b', calls: [], tokens: 2, stop: 'stop' },
    ],
    answer: { files: ['a.py'], ranges: [], modules: [], functions: [], parse: 'exact' },
    tokens: {
      ids: [10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
      spans: [
        [4, 6, 0],
        [8, 10, 1],
      ],
      logprobs: [-1, -2, -3, -4],
      logprob_kind: 'ref-2/fp32',
    },
    usage: { prompt: 4, generated: 4, calls: 2, turns: 2 },
    stop: 'answer',
    reward: 0,
    advantage: 0,
    ...over,
  }
}

function call(id: string): Rollout['turns'][number]['calls'][number] {
  return { id, name: 'grep', arguments: { pattern: 'x' }, status: 'ok', observation: 'a.py:1:x', truncated: false }
}

let line = 0

export function item(record: Rollout): Known<'rollout'> {
  return { kind: 'rollout', record, origin: { file: 'in.ndjson', line: ++line } }
}

/** The rollouts of a group, adjacent. `missing`: how many of them were dropped on the way. */
export function group(id: string, index: number, size: number, over: Made = {}, missing = 0): Known<'rollout'>[] {
  return Array.from({ length: size - missing }, (_, sample) =>
    item(madeRollout({ ...over, id: `${id}.${sample}`, group: { id, size, index }, sample })),
  )
}

export function barrier(step: number, groups: number, over: Partial<Barrier> = {}): Known<'barrier'> {
  const record: Barrier = { kind: 'barrier', v: 1, step, version: step, groups, digest: String(step).padStart(64, '0'), ...over }
  return { kind: 'barrier', record, origin: { file: 'in.ndjson', line: ++line } }
}

export async function* stream(...items: (Item | Item[])[]): AsyncGenerator<Item> {
  for (const one of items.flat()) yield one
}

/** A member of the group of two of a step: prompt and two generated pieces of the fixture model's tokens; the log-probs are made up: a sampler that was a little off. */
export function pairedRollout(step: number, sample: number, over: Made = {}): Rollout {
  const ids = [2042, 84, 300, 301, 302, 198, ...[0, 1, 2, 3].map(i => 200 + ((step * 91 + sample * 37 + i * 11) % 1500))]
  return madeRollout({
    id: `g${step}.${sample}`,
    group: { id: `g${step}`, size: 2, index: 0 },
    sample,
    tokens: { ids, spans: [[6, 8, 0], [8, 10, 1]], logprobs: [-2, -2, -2, -2], logprob_kind: 'ref-2/fp32' }, // biome-ignore format: spans
    advantage: sample === 0 ? 0.7 : -0.7,
    reward: sample === 0 ? 1 : 0,
    ...over,
  })
}

const words = ['route', 'config', 'header', 'queue', 'retry', 'merge']

/** A teacher's session as text: one call, its result, an answer. */
export function textRollout(n: number, over: Made = {}) {
  const name = words[n % words.length]!
  return madeRollout({
    id: `r${n}`,
    problem_statement: `${name} raises KeyError`,
    group: { id: `g${n}`, size: 1, index: n },
    policy: { kind: 'lexical', name: 'lexical' },
    tokens: undefined,
    turns: [
      {
        text: `<tool_call>\n{"name": "grep", "arguments": {"pattern": "${name}"}}\n</tool_call>`,
        calls: [
          { id: '0.0', name: 'grep', arguments: { pattern: name }, status: 'ok', observation: `src/${name}.py:1:def`, truncated: false },
        ],
        tokens: 0,
        stop: 'stop',
      },
      { text: `<answer>{"files": ["src/${name}.py"]}</answer>`, calls: [], tokens: 0, stop: 'stop' },
    ],
    reward: n % 2,
    ...over,
  })
}
export function texts(count: number, over: Made = {}): AsyncGenerator<Item> {
  return stream(Array.from({ length: count }, (_, n) => item(textRollout(n, over))))
}
