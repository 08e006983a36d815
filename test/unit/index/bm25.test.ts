import t from 'tap'
import { bm25, inBm25Corpus } from '#cg/index/bm25.js'
import { bm25Tokens } from '#cg/index/bm25-tokens.js'
import { okapi } from '#cg/index/okapi.js'

const tokens: [text: string, tokens: string][] = [
  ["don't", 'dont'],
  ['def load(self, path):', 'def loadself path'],
  ['(http://y) HttpResponse httplib2 xhttp', 'xhttp'],
  ['a bc D EF', 'bc ef'],
  ['src/app.py: line 3', 'src/app.py line'],
  ['\u212aelvin caf\u00e9', 'elvin caf'], // stripped before lower-casing: the Kelvin sign is no k
  ['one\ufefftwo three\u0085four', 'one two threefour'], // white space is ECMAScript's
]
for (const [text, expected] of tokens) t.test(JSON.stringify(text), async t => t.equal(bm25Tokens(text).join(' '), expected))

t.test('a score by hand', async t => {
  const index = okapi([
    ['xx', 'yy'],
    ['xx', 'xx', 'zz', 'ww'],
    ['vv', 'uu'],
  ])
  // xx: N 3, n 2: ln 1.5 − ln 2.5 < 0, so ¼ of the mean idf; the other five: ln 2.5 − ln 1.5
  const rare = Math.log(2.5) - Math.log(1.5)
  const mean = (5 * rare + (Math.log(1.5) - Math.log(2.5))) / 6
  near(t, index.idf.get('xx')!, mean / 4)
  near(t, index.averageIdf, mean)
  // document 0: 2 tokens, mean length 8/3: 1 · 2.5 / (1 + 1.5 · (0.25 + 0.75 · 2 / (8/3)))
  near(t, index.scores(['yy'])[0]!, (rare * 2.5) / (1 + 1.5 * (0.25 + (0.75 * 2) / (8 / 3))))
  near(t, index.scores(['yy', 'yy', 'no'])[0]!, 2 * index.scores(['yy'])[0]!)
  t.equal(index.scores(['yy'])[1], 0)
})

t.test('no token anywhere: all scores are 0', async t => {
  const index = okapi([[], []])
  t.same([...index.scores(['aa'])], [0, 0])
  t.equal(index.averageIdf, 0)
})

t.test('the path counts twice', async t => {
  const index = await bm25([
    { path: 'aa', text: 'unrelated words here' },
    { path: 'b/c.py', text: 'aa' },
    { path: 'd/e.py', text: 'more words' },
  ])
  const found = index.rank('aa', 3)
  const content = index.content.scores(['aa'])
  const path = index.path.scores(['aa'])
  t.equal(found[0]!.path, 'aa')
  near(t, found[0]!.score, 2 * path[0]!)
  near(t, found[1]!.score, content[1]!)
})

t.test('equal scores stay in the order of the files, and K files come whatever they score', async t => {
  const files = ['c.py', 'a.py', 'b.py'].map(path => ({ path, text: 'same' }))
  const paths = async (query: string, k?: number) => (await bm25(files)).rank(query, k).map(found => found.path)
  t.same(await paths('nothing of it'), ['c.py', 'a.py'])
  t.same(await paths('', 9), ['c.py', 'a.py', 'b.py'])
  t.same((await bm25([])).rank('x'), [])
})

t.test('files come as they are read', async t => {
  async function* files() {
    yield { path: 'a.py', text: 'needle' }
    yield { path: 'b.py', text: 'hay' }
    yield { path: 'c.py', text: 'hay' }
  }
  t.equal((await bm25(files())).rank('needle', 1)[0]!.path, 'a.py')
})

const corpus: [path: string, inside: boolean][] = [
  ['src/app.py', true],
  ['tests/test_app.py', true],
  ['README.md', false],
  ['src/__pycache__/app.py', false],
  ['.venv/lib/x.py', false],
  ['venv/x.py', false],
  ['env/x.py', false],
  ['build/lib/x.py', false],
  ['pkg/dist/x.py', false],
  ['.eggs/x.py', false],
  ['src/environment/build.py', true],
]
for (const [path, inside] of corpus) t.test(path, async t => t.equal(inBm25Corpus(path), inside))

function near(t: { ok(value: boolean, message: string): void }, actual: number, expected: number) {
  t.ok(Math.abs(actual - expected) <= 1e-12 * Math.abs(expected), `${actual} is ${expected}`)
}
