import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadEngine } from '#cg/engine/load.js'
import { engineCases } from './cases.js'
import type { GoldenKind, GoldenResult } from './kind.js'
import { measures } from './measure.js'

type Tensor = { dtype: string; shape: number[]; first_values: (number | string)[] }
type File = { file: string; metadata?: Record<string, string> | null; tensors?: Record<string, Tensor> }
type FileCase = { name: string; path: string; valid: boolean; expected: File | undefined }

const dtypes: Record<string, string> = {
  float64: 'F64',
  float32: 'F32',
  float16: 'F16',
  bfloat16: 'BF16',
  float8_e4m3fn: 'F8_E4M3',
  float8_e5m2: 'F8_E5M2',
  int64: 'I64',
  int32: 'I32',
  int16: 'I16',
  int8: 'I8',
  uint8: 'U8',
  bool: 'BOOL',
}

/** Safetensors files: every valid one is read with its values, every corrupt one is refused, the two that the reference library lets through included. */
export const checkpointRead: GoldenKind<FileCase> = {
  name: 'checkpoint-read',
  find: root =>
    engineCases<{ files: File[] }>(root, 'checkpoint-read').flatMap(({ folder, meta }) =>
      ['valid', 'corrupt'].flatMap(sub => {
        const names = existsSync(join(folder, sub)) ? readdirSync(join(folder, sub)).sort() : []
        return names.map(name => ({
          name: `${sub}/${name}`,
          path: join(folder, sub, name),
          valid: sub === 'valid',
          expected: meta.files.find(file => file.file === `${sub}/${name}`),
        }))
      }),
    ),
  run: c => (c.valid ? readsValid(c) : refusesCorrupt(c)),
}

function refusesCorrupt({ path, name }: FileCase): GoldenResult {
  try {
    loadEngine().readSafetensors(path)
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    if (code === 'E_CHECKPOINT' && message.startsWith(`${path}: `) && message.length > path.length + 10) return { status: 'passed' }
    return { status: 'failed', message: `${name}: refused, but not with a message that says why: ${code} ${message}` }
  }
  return { status: 'failed', message: `${name}: accepted` }
}

function readsValid({ path, expected }: FileCase): GoldenResult {
  const seen = measures()
  if (!expected?.tensors) return { status: 'failed', message: `${path}: meta.json does not say what is in it` }
  const { tensors, metadata } = loadEngine().readSafetensors(path)
  seen.same('names', tensors.map(t => t.name).sort(), Object.keys(expected.tensors).sort())
  seen.same('metadata', Object.entries(metadata).sort(), Object.entries(expected.metadata ?? {}).sort())
  for (const tensor of tensors) {
    const want = expected.tensors[tensor.name]
    if (!want) continue
    seen.same(`${tensor.name}: shape`, tensor.shape, want.shape)
    seen.same(`${tensor.name}: dtype`, tensor.dtype, dtypes[want.dtype.replace('torch.', '')] ?? want.dtype)
    want.first_values.forEach((value, i) => {
      const got = tensor.values[i]
      const number = typeof value === 'number' ? value : Number(value.replace(/inf(inity)?/i, 'Infinity'))
      if (!Object.is(got, number) && !(got === number)) seen.fail(`${tensor.name}[${i}] is ${got}, expected ${value}`)
    })
  }
  return seen.result()
}
