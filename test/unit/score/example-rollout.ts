import type { Rollout, Target } from '#cg/record/schema.js'

export type Example = {
  id?: string
  instance?: string
  group?: string
  size?: number
  sample?: number
  /** Issued calls of each turn; the last turn is the answering one unless `stop` says otherwise. */
  calls?: number[]
  files?: string[]
  ranges?: string[]
  stop?: Rollout['stop']
  target?: Target | null
  policy?: string
  more?: Record<string, unknown>
}

/** `a.py b.py` is gold; ranges as `a.py:1-4`. */
export function target(files: string, ranges = ''): Target {
  return {
    gold_rules: 'codegrep/1',
    files: words(files).map(path => ({ path, weight: 1, source: 'patch' })),
    ranges: words(ranges).map(range),
    modules: [],
    functions: [],
  }
}

/** A rollout that asks, say, twice in its first turn and answers `a.py` in its second, which is gold. */
export function rollout(example: Example = {}): Rollout {
  const {
    instance = 'i1',
    group = `${instance}/g`,
    size = 1,
    sample = 0,
    calls = [2, 0],
    files = ['a.py'],
    ranges = [],
    stop = 'answer',
  } = example
  return {
    kind: 'rollout',
    v: 1,
    id: example.id ?? `${group}/${sample}`,
    instance_id: instance,
    repo: 'o/r',
    base_commit: '1'.repeat(40),
    problem_statement: 'It breaks.',
    ...(example.target === null ? {} : { target: example.target ?? target('a.py') }),
    group: { id: group, size, index: 0 },
    sample,
    policy: { kind: 'lexical', name: example.policy ?? 'lexical' },
    toolset: 'codegrep',
    protocol: { name: 'brief', digest: '0' },
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
    turns: calls.map(count => ({
      text: 'looking',
      calls: Array.from({ length: count }, (_, n) => ({
        id: `c${n}`,
        name: 'grep',
        arguments: { pattern: 'x' },
        status: n < 8 ? 'ok' : 'not-run',
        observation: '',
        truncated: false,
      })),
      tokens: 10,
      stop: 'stop',
    })),
    answer: { files, ranges: ranges.map(range), modules: [], functions: [], parse: stop === 'answer' ? 'exact' : 'none' },
    usage: { prompt: 50, generated: 10 * calls.length, calls: calls.reduce((a, b) => a + b, 0), turns: calls.length },
    stop,
    ...example.more,
  }
}

function range(text: string) {
  const [, path, start, end] = /^(.*):(\d+)-(\d+)$/.exec(text)!
  return { path: path!, start: Number(start), end: Number(end) }
}

function words(text: string): string[] {
  return text.split(' ').filter(Boolean)
}
