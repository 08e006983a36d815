import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { canonical, sha256 } from '../record/canonical.js'
import { FatalError } from '../record/fault.js'
import { optimizerFile } from '../record/run-directory.js'

const modelFiles =
  /^(config|generation_config|tokenizer|tokenizer_config|cg)\.json$|^chat_template\.jinja$|\.safetensors$|\.safetensors\.index\.json$/
const adapterFiles = /^adapter_(config\.json|model\.safetensors)$/

/** Is this the name of a file of a PEFT adapter directory? */
export function adapterFile(name: string): boolean {
  return adapterFiles.test(name)
}

/** sha256 of what decides a model's answers: canonical JSON [[name, sha256]…] of weights, configuration, tokenizer and template in a checkpoint directory. */
export function modelDigest(dir: string): Promise<string> {
  return contentDigest(
    dir,
    name => modelFiles.test(name) && !adapterFiles.test(name) && name !== optimizerFile,
    'a model (config.json and *.safetensors)',
  )
}

/** sha256 of a PEFT adapter directory: adapter_config.json and adapter_model.safetensors. */
export function adapterDigest(dir: string): Promise<string> {
  return contentDigest(dir, adapterFile, 'an adapter (adapter_config.json and adapter_model.safetensors)')
}

type Stamp = [name: string, size: string, mtimeNs: string]

/** Hashing tens of gigabytes takes minutes: digests are kept per user by size and time of the files. Neither is part of a digest. */
async function contentDigest(dir: string, wanted: (name: string) => boolean, what: string): Promise<string> {
  let names: string[]
  try {
    names = (await readdir(dir)).filter(wanted).sort()
  } catch (error) {
    throw new FatalError('E_CHECKPOINT', `${dir}: ${(error as Error).message}`)
  }
  if (!names.some(name => name.endsWith('.safetensors'))) throw new FatalError('E_CHECKPOINT', `${dir}: is not ${what}`)
  const stamps: Stamp[] = []
  for (const name of names) {
    const { size, mtimeNs } = await stat(join(dir, name), { bigint: true })
    stamps.push([name, size.toString(), mtimeNs.toString()])
  }
  const memo = join(cacheHome(), 'cg', 'digests', `${sha256(`${await realpath(dir)}\0${what}`)}.json`)
  const known = await recall(memo, stamps)
  if (known) return known

  const parts: [string, string][] = []
  for (const name of names) parts.push([name, await fileDigest(join(dir, name))])
  const digest = sha256(canonical(parts))
  await remember(memo, stamps, digest)
  return digest
}

async function fileDigest(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

async function recall(memo: string, stamps: Stamp[]): Promise<string | undefined> {
  try {
    const kept = JSON.parse(await readFile(memo, 'utf8')) as { stamps: Stamp[]; digest: string }
    return canonical(kept.stamps) === canonical(stamps) && /^[0-9a-f]{64}$/.test(kept.digest) ? kept.digest : undefined
  } catch {
    return undefined
  }
}

/** Best effort: a cache directory that cannot be written only costs time. */
async function remember(memo: string, stamps: Stamp[], digest: string): Promise<void> {
  const recent = stamps.some(([, , mtime]) => Date.now() - Number(BigInt(mtime) / 1_000_000n) < 2000)
  if (recent) return // a file written within the clock's grain could change again under the same time
  try {
    await mkdir(join(memo, '..'), { recursive: true })
    const partial = `${memo}.${process.pid}`
    await writeFile(partial, JSON.stringify({ stamps, digest }))
    await rename(partial, memo)
  } catch {}
}

function cacheHome(): string {
  return process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
}
