import { readFileSync } from 'node:fs'

/** The version of the package, as `--version` and `run` records state it. */
export const version: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
