import { createHash } from 'node:crypto'

/**
 * Canonical JSON (RFC 8785): keys sorted by UTF-16 code units, numbers as ECMAScript prints them, no white space.
 *
 * Members that are undefined are left out; typed arrays count as arrays; a BigInt is written with all its digits. Throws TypeError for what JSON cannot say
 * (NaN, infinities, functions, undefined inside an array).
 */
export function canonical(value: unknown): string {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return JSON.stringify(value)
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`canonical JSON has no ${value}`)
      return JSON.stringify(value)
    case 'bigint':
      return value.toString()
    case 'object':
      break
    default:
      throw new TypeError(`canonical JSON has no ${typeof value}`)
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (ArrayBuffer.isView(value)) return `[${Array.from(value as Int32Array, canonical).join(',')}]`
  const object = value as Record<string, unknown>
  const members: string[] = []
  for (const key of Object.keys(object).sort())
    if (object[key] !== undefined) members.push(`${JSON.stringify(key)}:${canonical(object[key])}`)
  return `{${members.join(',')}}`
}

/** sha256 in hex; a string is hashed as UTF-8. */
export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/**
 * Content-derived id: the same kind, parents and deciding options give the same id in every run.
 *
 * Neither clock, host nor path may be among the options.
 */
export function contentId(kind: string, parents: readonly string[], options: unknown): string {
  return sha256(canonical({ kind, parents, options }))
}
