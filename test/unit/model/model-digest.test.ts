import { cpSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adapterDigest, modelDigest } from '#cg/model/model-digest.js'

t.test('digests are of contents', async t => {
  const dir = t.testdir()
  process.env.XDG_CACHE_HOME = join(dir, 'cache')
  const copy = (name: string) => {
    const to = join(dir, name)
    cpSync('fixtures/model', to, { recursive: true })
    return to
  }
  const a = copy('a')
  const b = copy('b')
  const digest = await modelDigest(a)
  t.match(digest, /^[0-9a-f]{64}$/)
  t.equal(await modelDigest(b), digest, 'the same elsewhere')
  writeFileSync(join(a, 'README.md'), 'words')
  mkdirSync(join(a, 'logs'))
  t.equal(await modelDigest(a), digest, 'other files do not count')

  // An old file is remembered by size and time, so the second look does not read it; a newer time makes it read again.
  const weights = join(a, 'model.safetensors')
  const long = new Date('2020-01-01T00:00:00Z')
  for (const name of [
    'config.json',
    'generation_config.json',
    'tokenizer.json',
    'tokenizer_config.json',
    'chat_template.jinja',
    'cg.json',
    'model.safetensors',
  ])
    utimesSync(join(a, name), long, long)
  t.equal(await modelDigest(a), digest)
  const bytes = readFileSync(weights)
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(weights, bytes)
  utimesSync(weights, long, long)
  t.equal(await modelDigest(a), digest, 'remembered')
  utimesSync(weights, new Date(), new Date('2021-01-01T00:00:00Z'))
  t.not(await modelDigest(a), digest, 'looked at again')

  await t.rejects(modelDigest(join(dir, 'none')), { code: 'E_CHECKPOINT' })
  await t.rejects(adapterDigest(b), { code: 'E_CHECKPOINT', message: /is not an adapter/ })
  writeFileSync(join(b, 'adapter_model.safetensors'), 'x')
  writeFileSync(join(b, 'adapter_config.json'), '{}')
  t.match(await adapterDigest(b), /^[0-9a-f]{64}$/)
  t.equal(await modelDigest(b), digest, 'an adapter beside a model is not part of it')
})
