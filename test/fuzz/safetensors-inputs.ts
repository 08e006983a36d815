import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A file of the format: the length of its header, the header, the bytes of its tensors. */
function file(header: string, data: number): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(header)))
  return Buffer.concat([length, Buffer.from(header), Buffer.alloc(data, 1)])
}

const one = (dtype: string, shape: string, range: string) => `{"t":{"dtype":"${dtype}","shape":[${shape}],"data_offsets":[${range}]}}`

/** Good files of every type, and what an attacker would try: sizes that overflow, ranges outside the file or over each other, depth, doubles. */
export function safetensorsCorpus(): Buffer[] {
  const folder = 'fixtures/golden/engine/checkpoint-read/corrupt'
  const kept = readdirSync(folder)
    .filter(name => name.endsWith('.safetensors'))
    .map(name => readFileSync(join(folder, name)))
  return [
    ...['F32', 'F16', 'BF16', 'F64', 'I64', 'U64', 'I32', 'U8', 'BOOL', 'F8_E4M3', 'F8_E5M2', 'F8_E8M0', 'C64'].map(dtype =>
      file(one(dtype, '2', `0,${dtype.endsWith('64') ? 16 : 8}`), dtype.endsWith('64') ? 16 : 8),
    ),
    file(
      '{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[],"data_offsets":[4,5]},"__metadata__":{"k":"v"}}',
      5,
    ),
    file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}', 12),
    file(one('F32', '4294967296,4294967296', '0,8'), 8),
    file(one('F32', '9223372036854775807,2', '0,8'), 8),
    file(one('F32', '0,9223372036854775807', '0,0'), 0),
    file(one('F32', '9223372036854775807,0,9223372036854775807', '0,0'), 0),
    file(one('F32', '-1', '0,8'), 8),
    file(one('F32', '2', '-8,0'), 8),
    file(one('F32', '1e0', '0,4'), 4),
    file(one('F32', 'NaN', '0,4'), 4),
    file(one('F32', '2', '18446744073709551608,0'), 8),
    file(`{"t":${'['.repeat(200)}`, 8),
    file('{}', 0),
    Buffer.from('ffffffffffffff7f7b7d', 'hex'),
    ...kept,
  ]
}

export const safetensorsWords = [
  ...[
    '{"t":',
    '"dtype":"F32"',
    '"F16"',
    '"I64"',
    '"shape":[',
    '"data_offsets":[0,8]',
    '"__metadata__":{',
    '"a":"b"',
    ',',
    ':',
    '[',
    ']',
    '{',
    '}',
    '"',
    '\\ud800',
    '\\u0000',
    'null',
    '9223372036854775807',
  ],
]
