import t from 'tap'
import { protocol } from '#cg/model/protocol.js'

const limits = { maxTurns: 4, maxCalls: 8 }
const task = (problem_statement: string, repo = 'acme/lib') => ({ repo, problem_statement })
const user = (statement: string, chars = 16_000, repo?: string) => protocol('brief', limits).open(task(statement, repo), chars)[1]!.content

t.test('brief is exactly these words', async t =>
  t.equal(
    protocol('brief', limits).system,
    'Find the files to change. Tools: grep(pattern, path?, glob?), glob(pattern), read(path, start?, end?).',
  ),
)

t.test('full states the limits that hold', async t => {
  t.match(protocol('full', { maxTurns: 3, maxCalls: 5 }).system, 'up to 5 tool calls')
  t.match(protocol('full', { maxTurns: 3, maxCalls: 5 }).system, '3 turns in all')
  t.equal(protocol('full', limits).toolsBlock, true)
  t.equal(protocol('brief', limits).toolsBlock, false)
})

t.test('the digest changes with the words', async t => {
  t.not(protocol('full', limits).digest, protocol('full', { ...limits, maxTurns: 3 }).digest)
  t.not(protocol('full', limits).digest, protocol('brief', limits).digest)
  t.equal(protocol('brief', limits).digest, protocol('brief', { ...limits, maxTurns: 3 }).digest)
})

t.test('the user message', async t => {
  t.equal(user('Broken.\r\nAt line 3.  \n'), 'Repository: acme/lib\n\nBroken.\nAt line 3.')
  t.equal(user('Broken.', 16_000, ''), 'Broken.', 'without a name there is no first line')
  t.equal(user('$& $1', 16_000, '$&'), 'Repository: $&\n\n$& $1', 'names are no patterns')
})

t.test('a long issue is cut by code points, with a marker', async t => {
  t.equal(user('😀'.repeat(6), 6), `Repository: acme/lib\n\n${'😀'.repeat(6)}`)
  t.equal(user('😀'.repeat(7), 6), `Repository: acme/lib\n\n${'😀'.repeat(6)}\n[issue cut: 6 of 7 characters]`)
})
