import t from 'tap'
import { type CountTurns, callsPerTurn } from '#cg/score/calls-per-turn.js'

const cases: [name: string, calls: number[], answered: boolean, count: CountTurns, mean: number][] = [
  ['the answering turn is a turn', [4, 0], true, 'answer-free', 2],
  ['calls beside the answer do not count', [4, 8], true, 'answer-free', 2],
  ['unless the paper is taken at its word', [4, 8], true, 'paper', 6],
  ['exploring turns alone', [4, 8], true, 'exploring', 4],
  ['without an answer every turn explores', [4, 8], false, 'exploring', 6],
  ['without an answer every call counts', [4, 8], false, 'answer-free', 6],
  ['an answer at once', [0], true, 'answer-free', 0],
  ['an answer at once leaves no exploring turn', [5], true, 'exploring', 0],
  ['no turn at all', [], false, 'answer-free', 0],
  ['more calls than are run', [20], false, 'answer-free', 20],
]

for (const [name, calls, answered, count, mean] of cases) t.test(name, async t => t.equal(callsPerTurn(calls, answered, count), mean))
