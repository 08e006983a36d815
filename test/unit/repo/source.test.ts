import t from 'tap'
import { RecordFault, UsageError } from '#cg/record/fault.js'
import { sourceOf, templateProblem, withoutPassword } from '#cg/repo/source.js'

const urls: [name: string, repo: string, template: string | undefined, url: string][] = [
  ['GitHub', 'acme/lib', undefined, 'https://github.com/acme/lib.git'],
  ['owner and name', 'acme/lib', 'https://host/{owner}-{name}', 'https://host/acme-lib'],
  ['all before the last slash is the owner', 'a/b/c', 'https://host/{owner}:{name}', 'https://host/a/b:c'],
  ['ssh', 'acme/lib', 'git@host:{repo}.git', 'git@host:acme/lib.git'],
  ['ssh URL', 'acme/lib', 'ssh://git@host/{repo}', 'ssh://git@host/acme/lib'],
  ['file URL', 'acme/lib', 'file:///srv/{repo}.git', 'file:///srv/acme/lib.git'],
  ['a path', 'acme/lib', '/srv/{owner}+{name}', '/srv/acme+lib'],
  ['a relative path', 'lib', 'mirror/{name}', `${process.cwd()}/mirror/lib`],
  ['a colon after a slash is part of a path', 'lib', './a:b/{name}', `${process.cwd()}/a:b/lib`],
]
for (const [name, repo, template, url] of urls) t.test(name, async t => t.equal(sourceOf(repo, template).url, url))

for (const template of ['{bad}', '', '-u', 'ext::sh -c x', 'EXT::x', 'ftp://host/{repo}'])
  t.test(`template ${template} is refused`, async t => {
    t.type(templateProblem(template), 'string')
    t.throws(() => sourceOf('a/b', template), UsageError)
  })

t.test('a name without owner needs a template without one', async t => {
  t.throws(() => sourceOf('lib'), { code: 'E_SOURCE' })
  t.throws(() => sourceOf('lib', 'https://host/{owner}/{name}'), RecordFault)
})

t.test('only a named source is trusted with the home directory', async t => {
  t.equal(sourceOf('a/b').userGiven, false)
  t.equal(sourceOf('a/b', 'https://host/{repo}').userGiven, true)
})

t.test('passwords and tokens are not shown', async t => {
  t.equal(withoutPassword('cannot read https://me:secret@host/x, ssh://tok@h/y'), 'cannot read https://***@host/x, ssh://***@h/y')
  t.equal(sourceOf('a/b', 'https://me:secret@host/{repo}').shown, 'https://***@host/a/b')
})
