import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { FatalError } from '../record/fault.js'

/** Reads a file of the run directory and checks it; what comes back has the file's own order of fields. Throws FatalError E_RUN that names the file and what is wrong with it. */
export function readJson<T>(file: string, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw damaged(file, (error as Error).message)
  }
  const checked = schema.safeParse(value)
  if (!checked.success) {
    const [issue] = checked.error.issues
    throw damaged(file, `${issue!.path.join('.')}: ${issue!.message}`)
  }
  return value as T
}

function damaged(file: string, why: string): FatalError {
  return new FatalError('E_RUN', `${file} is damaged (${why}): start again in another directory`)
}
