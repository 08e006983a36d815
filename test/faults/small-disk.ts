import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const namespace = ['unshare', '--map-root-user', '--mount']

/** For tests that need a real disk of a few hundred KiB: why it cannot be had here, or false. */
export const noSmallDisk =
  spawnSync('unshare', [...namespace.slice(1), 'mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', '/mnt']).status === 0
    ? false
    : 'needs a tmpfs in a mount namespace of its own (unshare)'

/** What a step of a script said, by its name: see `step` below. */
export type Said = Record<string, { status: number; stdout: string; stderr: string }>

/**
 * Runs a bash script whose `$disk` is a tmpfs of `kib` KiB that nobody else sees and that is gone afterwards.
 *
 * The script has `step NAME COMMAND…`, which keeps status and output of a command, the seven commands, and `grow`, which makes the disk large.
 */
export function onSmallDisk(dir: string, kib: number, script: string, env: NodeJS.ProcessEnv = {}): Promise<Said> {
  const disk = join(dir, 'disk')
  const said = join(dir, 'said')
  mkdirSync(disk, { recursive: true })
  mkdirSync(said, { recursive: true })
  const prelude = `
    unset NODE_OPTIONS
    PATH=${resolve('bin')}:$PATH
    mount -t tmpfs -o size=${kib}k none "$disk" || exit 99
    step() { local name=$1; shift; "$@" > "$said/$name.out" 2> "$said/$name.err"; echo $? > "$said/$name.status"; }
    grow() { mount -o remount,size=64m "$disk" || exit 99; }`
  const child = spawn(namespace[0]!, [...namespace.slice(1), 'bash', '-c', `${prelude}\n${script}`], {
    env: { ...process.env, NO_COLOR: '1', ...env, disk, said },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return new Promise((done, reject) => {
    child.on('error', reject)
    child.on('close', status => (status === 99 ? reject(new Error('no tmpfs')) : done(readSaid(said))))
  })
}

function readSaid(dir: string): Said {
  const read = (name: string, end: string) => readFileSync(join(dir, `${name}.${end}`), 'utf8')
  const names = readdirSync(dir).filter(name => name.endsWith('.status'))
  return Object.fromEntries(
    names.map(file => {
      const name = file.slice(0, -'.status'.length)
      return [name, { status: Number(read(name, 'status')), stdout: read(name, 'out'), stderr: read(name, 'err') }]
    }),
  )
}
