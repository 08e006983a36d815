import { canonical, sha256 } from '../record/canonical.js'
import type { Instance } from '../record/schema.js'
import type { ChatMessage } from './template.js'

/**
 * The words that open a rollout; versioned, because small models depend on them byte for byte.
 *
 * `digest` is of all of them: two rollouts with the same name and digest were asked in the same words.
 */
export type Protocol = {
  name: 'full' | 'brief'
  digest: string
  system: string
  /** Are the tools' schemas given to the chat template? */
  toolsBlock: boolean
  /** System and user message; an issue longer than `issueChars` code points is cut, with a marker. */
  open(task: Pick<Instance, 'repo' | 'problem_statement'>, issueChars: number): ChatMessage[]
}

/** Limits that the words state; they must be those that hold. */
export type StatedLimits = { maxTurns: number; maxCalls: number }

const briefSystem = 'Find the files to change. Tools: grep(pattern, path?, glob?), glob(pattern), read(path, start?, end?).'

function fullSystem({ maxTurns, maxCalls }: StatedLimits): string {
  return `You are a code search agent. You get an issue and a repository, and find the files that have to change to resolve the issue.

Search with the tools; you cannot change anything. The repository is shown as it was when the issue was written.
- In each turn write up to ${maxCalls} tool calls one after the other; they run at the same time. Prefer several different searches in one turn to one search a turn.
- You have ${maxTurns} turns in all; calls made in the last one are not run, so answer by then at the latest.
- grep takes regular expressions in ripgrep's dialect and gives lines as path:line:text. glob gives paths. read gives numbered lines.
- The last line of a result says in square brackets when nothing was found, when something went wrong or when there is more than is shown.

When you know enough, write no call and end with exactly one answer:
<answer>{"files": ["path/to/file.py"], "line_ranges": ["path/to/file.py:12-20"]}</answer>
files: the repository-relative paths of the files to change, the surest first; a wrong file costs more than a missing one. line_ranges: the lines in them that have to change, or [].`
}

const userForm = { repository: 'Repository: {repo}\n\n', cut: '\n[issue cut: {shown} of {total} characters]' }

/** The protocol of a name (protocol: opening). */
export function protocol(name: 'full' | 'brief', limits: StatedLimits): Protocol {
  const system = name === 'brief' ? briefSystem : fullSystem(limits)
  return {
    name,
    digest: sha256(canonical({ name, system, user: userForm, answer: 1 })),
    system,
    toolsBlock: name === 'full',
    open: ({ repo, problem_statement }, issueChars) => [
      { role: 'system', content: system },
      {
        role: 'user',
        content: (repo === '' ? '' : userForm.repository.replace('{repo}', () => repo)) + issueText(problem_statement, issueChars),
      },
    ],
  }
}

function issueText(statement: string, limit: number): string {
  const text = statement.replaceAll('\r\n', '\n').trimEnd()
  if (text.length <= limit) return text
  const points = Array.from(text)
  if (points.length <= limit) return text
  return (
    points.slice(0, limit).join('').trimEnd() + userForm.cut.replace('{shown}', String(limit)).replace('{total}', String(points.length))
  )
}
