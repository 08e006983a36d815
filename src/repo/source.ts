import { resolve } from 'node:path'
import { RecordFault, UsageError } from '../record/fault.js'

/** Where a repository is fetched from. */
export type Source = {
  url: string
  /** For messages: without a password. */
  shown: string
  /** The user named it (`--source`, `--repo`): home directory and ssh agent may be used. */
  userGiven: boolean
}

export const defaultTemplate = 'https://github.com/{repo}.git'

/** Why a `--source` template cannot work, or undefined. */
export function templateProblem(template: string): string | undefined {
  const unknown = [...template.matchAll(/\{([^}]*)\}/g)].map(m => m[1]!).find(name => !['repo', 'owner', 'name'].includes(name))
  if (unknown !== undefined) return `{${unknown}} is not known: use {repo}, {owner} and {name}`
  if (template === '') return 'is empty: give a URL or a path, with {repo}, {owner} or {name}'
  if (template.startsWith('-')) return 'begins with a dash: write ./ before a path'
  if (/^[a-z0-9+.-]*::/i.test(template)) return 'names a transport helper: use https, ssh, git, file or a path'
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(template)?.[1]?.toLowerCase()
  if (scheme && !['https', 'http', 'ssh', 'git', 'file'].includes(scheme))
    return `${scheme}:// is not supported: use https, ssh, git, file or a path`
  return undefined
}

/**
 * The source of `repo` by a template: `{repo}` is `OWNER/NAME`, `{owner}` all before the last `/`, `{name}` what follows it.
 *
 * Without a template: GitHub over https. A template that is neither a URL nor `HOST:PATH` is a local path. Throws UsageError for a template that cannot work,
 * RecordFault E_SOURCE for a repository that does not fit it.
 */
export function sourceOf(repo: string, template?: string): Source {
  const problem = template === undefined ? undefined : templateProblem(template)
  if (problem) throw new UsageError(`--source ${template}: ${problem}`)
  const slash = repo.lastIndexOf('/')
  const owner = repo.slice(0, Math.max(0, slash))
  const chosen = template ?? defaultTemplate
  if (owner === '' && (template === undefined || chosen.includes('{owner}')))
    throw new RecordFault(
      'E_SOURCE',
      `repo ${JSON.stringify(repo)} has no owner, which ${chosen} needs: write OWNER/NAME, or give --source with {name}`,
    )

  const filled = chosen
    .replaceAll('{repo}', repo)
    .replaceAll('{owner}', owner)
    .replaceAll('{name}', repo.slice(slash + 1))
  const url = isPath(filled) ? resolve(filled) : filled
  return { url, shown: withoutPassword(url), userGiven: template !== undefined }
}

/** Text of git with passwords and tokens in URLs made unreadable. */
export function withoutPassword(text: string): string {
  return text.replace(/([a-z]+:\/\/)[^/\s@]+@/gi, '$1***@')
}

/** Like git: a colon before the first slash means `HOST:PATH`. */
function isPath(source: string): boolean {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) return false
  const colon = source.indexOf(':')
  const slash = source.indexOf('/')
  return colon < 0 || (slash >= 0 && slash < colon)
}
