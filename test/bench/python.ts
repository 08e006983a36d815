import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { execa } from 'execa'
import { benchDirectory, type Say } from './bench.js'

/** What a peer needs, by the files in peers/: `trainer` is PyTorch with TRL and PEFT, `decoder` llama.cpp. */
export type Peers = 'trainer' | 'decoder'

/**
 * The Python of a virtual environment in which a kind of peer is installed, at the versions of peers/NAME.txt; installs it on first use.
 *
 * pip's own settings hold (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL …): where an index has PyTorch's CPU wheels, naming it saves the CUDA libraries. Lines that begin
 * with `--no-deps` are installed without what they depend on.
 */
export async function python(peers: Peers, say: Say): Promise<string> {
  const environment = join(benchDirectory, peers)
  const program = resolve(environment, 'bin/python')
  const requirements = readFileSync(`test/bench/peers/${peers}.txt`, 'utf8')
  const stamp = join(environment, '.installed')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === requirements) return program

  say(`installing ${peers} peers into ${environment} (minutes, once)`)
  await execa('python3', ['-m', 'venv', environment], toStderr)
  const lines = requirements.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  const bare = lines.filter(line => line.startsWith('--no-deps ')).map(line => line.slice('--no-deps '.length))
  const pip = (...args: string[]) => execa(program, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args], toStderr)
  await pip(...lines.filter(line => !line.startsWith('--no-deps ')))
  if (bare.length > 0) await pip('--no-deps', ...bare)
  writeFileSync(stamp, requirements)
  return program
}

const toStderr = { stdin: 'ignore', stdout: 2, stderr: 2, env: { CMAKE_BUILD_PARALLEL_LEVEL: `${availableParallelism()}` } } as const
