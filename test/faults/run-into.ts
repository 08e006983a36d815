import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { plainNode, type Result } from '../pipeline/process.js'

/** Runs a script of ours with standard output into a file, as `> FILE` does; `stdout` is what stands in it at the end. */
export function runInto(
  file: string,
  script: string,
  args: readonly string[],
  { env, input }: { env: NodeJS.ProcessEnv; input: string },
): Promise<Result> {
  const fd = openSync(file, 'w')
  const child = spawn(plainNode[0], [...plainNode.slice(1), script, ...args], {
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['pipe', fd, 'pipe'],
  })
  closeSync(fd)
  child.stdin!.on('error', () => {})
  child.stdin!.end(input)
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, signal) => resolve({ stdout: readFileSync(file, 'utf8'), stderr, status, signal }))
  })
}
