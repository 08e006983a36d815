import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Result, run, scratch } from '../pipeline/process.js'
import { type Change, changes, type DiskError, failingDisk } from './disk.js'
import { listing, timeless } from './listing.js'
import { runInto } from './run-into.js'

/** A command that writes below a directory, the same each time. */
export type Job = {
  script: string
  /** The command line; `dir` is the disk that fails. */
  args(dir: string): string[]
  env?(dir: string): NodeJS.ProcessEnv
  input?: string
  /** Standard output goes into this file. */
  into?(dir: string): string
  /** Puts on the disk what is there before; gives the input. */
  before?(dir: string): Promise<string>
  /** Names below the directory that are not compared. */
  leave?: RegExp
  /** Looks for what seems whole and is not, given the listing after the fault and that of the whole run. */
  check?(t: Test, dir: string, whole: Record<string, string>): void | Promise<void>
}

/** What each error must come to in the message, where SQLite does not speak. */
const said: Record<DiskError, RegExp> = {
  ENOSPC: /: no space left on the device: free some\n/,
  EDQUOT: /: the disk quota is used up: free some space\n/,
  EIO: /: the disk failed \(EIO\): see the system log, and run it again\n/,
  EROFS: /: the file system is read-only: mount it writable, or name another place\n/,
}
const cacheSaid =
  /cache\.db: (cannot use the cache \(.*\)|no space left for the cache): free some space, name another --cache, or use --no-cache\n/

/**
 * Runs a command whole, and then with a disk that fails at each of the changes that `pick` chooses from those of the whole run, with each of the errors.
 *
 * Every time: status 1 and a message that names a file below the directory and says what to do (or 0, when all is there all the same); nothing that seems
 * whole and is not; and the same command on a well disk gives the output and the files of the whole run, and leaves nothing else.
 */
export async function everyChange(t: Test, job: Job, pick: (all: Change[]) => Change[], errors: DiskError[]): Promise<void> {
  const { dir: root } = scratch(t)
  const dir = join(root, 'disk')
  let { input = '' } = job
  const go = (disk: NodeJS.ProcessEnv = {}): Promise<Result> => {
    const env = { ...job.env?.(dir), ...disk }
    return job.into ? runInto(job.into(dir), job.script, job.args(dir), { env, input }) : run(job.script, job.args(dir), { env, input })
  }
  const clean = async () => {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir)
    if (job.before) input = await job.before(dir)
  }
  for (const error of errors) {
    await clean()
    const tally = join(root, `tally-${error}`)
    const whole = await go(failingDisk({ under: dir, error, tally }))
    t.equal(whole.status, 0, whole.stderr)
    const files = listing(dir, job.leave)
    const chosen = pick(changes(tally))
    t.ok(chosen.length > 0, `${chosen.length} places to fail at with ${error}`)
    for (const { n, call, path } of chosen) {
      const what = `${error} at change ${n}, ${call} ${path.slice(dir.length)}`
      await clean()
      await failed(t, job, dir, await go(failingDisk({ under: dir, error, from: n })), whole, files, what, error)
      const again = await go()
      t.equal(again.status, 0, `${what}: again: ${again.stderr}`)
      t.equal(timeless(again.stdout), timeless(whole.stdout), `${what}: again: the output of the whole run`)
      t.strictSame(listing(dir, job.leave), files, `${what}: again: the files of the whole run`)
    }
  }
}

async function failed(
  t: Test,
  job: Job,
  dir: string,
  result: Result,
  whole: Result,
  files: Record<string, string>,
  what: string,
  error: DiskError,
): Promise<void> {
  const { status, stdout, stderr } = result
  t.notMatch(stderr, /^ +at |this is a bug/m, `${what}: no stack`)
  if (status === 0) {
    t.equal(timeless(stdout), timeless(whole.stdout), `${what}: status 0, so all is there`)
    t.strictSame(listing(dir, job.leave), files)
  } else {
    t.equal(status, 1, `${what}: ${stderr}`)
    t.notMatch(stdout, /"kind":"end".*"ok":true/, `${what}: the output does not say that all is well`)
    t.ok(said[error].test(stderr) || cacheSaid.test(stderr), `${what}: what to do: ${stderr}`)
    t.ok(stderr.includes(dir) || job.into, `${what}: which file: ${stderr}`)
  }
  if (existsSync(dir)) await job.check?.(t, dir, files)
}
