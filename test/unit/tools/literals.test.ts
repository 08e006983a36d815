import t from 'tap'
import { literalsOf } from '#cg/tools/literals.js'

const cases: [pattern: string, literals: string[] | undefined][] = [
  ['foo', ['foo']],
  ['def save', ['def save']],
  ['foo|bar', ['foo', 'bar']],
  ['foo\\(x\\)', ['foo(x)']],
  ['a\\.b|c\\\\d', ['a.b', 'c\\d']],
  ['a\\|b', ['a|b']],
  ['x]}', ['x]}']],
  ['naïve', ['naïve']],
  ['a-b_c/d:e@f', ['a-b_c/d:e@f']],
  ['a.b', undefined],
  ['a+', undefined],
  ['(a)', undefined],
  ['[a]', undefined],
  ['a{2}', undefined],
  ['^a', undefined],
  ['a$', undefined],
  ['\\bfoo', undefined],
  ['\\d', undefined],
  ['\\n', undefined],
  ['a\\', undefined],
  ['a|', undefined],
  ['|a', undefined],
  ['a\nb', undefined],
  ['', undefined],
]
for (const [pattern, literals] of cases) t.test(JSON.stringify(pattern), async t => t.strictSame(literalsOf(pattern), literals))
