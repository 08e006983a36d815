import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { scratch } from '../pipeline/process.js'
import { commitChange, makeRepository } from '../unit/repo/make-repository.js'
import { rollout } from '../unit/score/example-rollout.js'
import { onSmallDisk, type Said } from './small-disk.js'
import { trainingInput } from './training.js'

const noSpace = /: no space left on the device: free some\n|is the disk full\? free some space\n/
/** Objects and locks that git leaves under temporary names. */
const gitLeftovers =
  'find "$disk" -name "tmp_*" -o -name "incoming-*" -o -name "*.lock" -o -name "*.new" -o -name "*.tmp" -o -name "*.gone*"'

/** A clone and a worktree on a disk of `kib` KiB, three nights in a row, and then on one that is large enough. */
export async function cloneOn(t: Test, kib: number): Promise<void> {
  const { dir, file } = scratch(t)
  const big = randomBytes(60_000).toString('hex') // 120 kB, which do not pack well
  const [commit] = makeRepository(join(dir, 'mirror/lib'), [{ 'a.py': 'v = 0\n', 'big.txt': big }])
  file('in', instance(commit!))
  const said = await onSmallDisk(
    dir,
    kib,
    `cd '${dir}'
     prepare() { cg-worktree --store "$disk/store" --source 'file://${dir}/mirror/{name}' in; }
     for night in 1 2 3; do step night$night prepare; step used$night du -s "$disk"; done
     step marks find "$disk" -name '*.ready'
     grow
     step well prepare
     step verify cg-worktree verify --store "$disk/store"
     step left ${gitLeftovers}`,
  )
  everyNight(t, said, dir)
  t.equal(said.marks!.stdout, '', 'nothing is marked as ready')
  t.equal(said.well!.status, 0, said.well!.stderr)
  t.equal(said.verify!.status, 0, said.verify!.stderr)
  t.equal(said.left!.stdout, '', 'nothing is left of the nights before')
}

/** A commit that came later, fetched into a clone on a disk that has become full, three nights in a row; what was there can still be read. */
export async function fetchOnFullDisk(t: Test): Promise<void> {
  const { dir, file } = scratch(t)
  const [first] = makeRepository(join(dir, 'mirror/lib'), [{ 'a.py': 'v = 0\n' }])
  makeRepository(join(dir, 'later'), [])
  file('in', instance(first!))
  file('in2', instance(commitChange(join(dir, 'later'), { 'big.txt': randomBytes(300_000).toString('hex') })))
  const said = await onSmallDisk(
    dir,
    300,
    `cd '${dir}'
     prepare() { cg-worktree --no-checkout --store "$disk/store" --source 'file://${dir}/mirror/{name}' "$1"; }
     step first prepare in
     git -C mirror/lib fetch -q '${dir}/later' main:later
     for night in 1 2 3; do step night$night prepare in2; step used$night du -s "$disk"; done
     step left ${gitLeftovers}
     step still prepare in
     grow
     step well prepare in2
     step end ${gitLeftovers}`,
  )
  t.equal(said.first!.status, 0, said.first!.stderr)
  everyNight(t, said, dir)
  t.equal(said.still!.status, 0, said.still!.stderr)
  t.equal(said.well!.status, 0, said.well!.stderr)
  t.equal(said.end!.stdout, '')
}

/** Results that a cache on a disk of `kib` KiB cannot keep; a larger one then gives the output that there is without a cache. */
export async function cacheOn(t: Test, kib: number): Promise<void> {
  const { dir, file } = scratch(t)
  const records = Array.from({ length: 400 }, (_, n) =>
    rollout({ instance: `g${n}`, group: `g${n}`, size: 1, sample: 0, files: [`${n}.py`] }),
  )
  file('in', records.map(record => `${JSON.stringify(record)}\n`).join(''))
  const said = await onSmallDisk(
    dir,
    kib,
    `reward() { cg-reward --cache "$disk/cache.db" '${dir}/in'; }
     step none cg-reward --no-cache '${dir}/in'
     for night in 1 2; do step night$night reward; done
     grow
     step well reward`,
  )
  for (const night of ['night1', 'night2']) {
    const { status, stdout, stderr } = said[night]!
    t.equal(status, 1, `${kib} KiB, ${night}: ${stderr}`)
    t.match(
      stderr,
      /cache\.db: (cannot use the cache \(.*\)|no space left for the cache): free some space, name another --cache, or use --no-cache\n/,
    )
    const lines = stdout.trimEnd().split('\n')
    t.match(lines.at(-1), /"kind":"end".*"ok":false/)
    t.strictSame(lines.slice(0, -1), said.none!.stdout.split('\n').slice(0, lines.length - 1), 'what was done has come out')
  }
  t.equal(said.well!.status, 0, said.well!.stderr)
  t.equal(said.well!.stdout, said.none!.stdout)
}

/** Training with its run directory on a disk of `kib` KiB, and then on one that is large enough. */
export async function trainOn(t: Test, kib: number): Promise<void> {
  const { dir, file } = scratch(t)
  file('in', trainingInput(2))
  const said = await onSmallDisk(
    dir,
    kib,
    `train() { cg-train grpo --model fixtures/model --lora-rank 8 --lr 1e-3 --publish "$disk/run" --resume --out "$disk/out" "$1"; }
     for night in 1 2 3; do step night$night train '${dir}/in'; step used$night du -s "$disk"; done
     grow
     step well train '${dir}/in'
     step left find "$disk" -name '*.tmp*' -o -name '*.unfinished' -o -name '*.new'`,
  )
  everyNight(t, said, dir)
  t.equal(said.well!.status, 0, said.well!.stderr)
  t.equal(said.left!.stdout, '')
}

/** Each night ends with status 1, says which disk and what to do, and leaves no more than the first one. */
function everyNight(t: Test, said: Said, dir: string): void {
  for (const night of ['night1', 'night2', 'night3']) {
    const { status, stdout, stderr } = said[night]!
    t.equal(status, 1, `${night}: ${stderr}`)
    t.match(stderr, noSpace)
    t.match(stderr, join(dir, 'disk'))
    t.notMatch(stderr, /this is a bug|check --source|^ +at /m)
    t.match(stdout, /"kind":"end".*"ok":false/)
  }
  const used = ['used1', 'used2', 'used3'].map(name => Number.parseInt(said[name]!.stdout, 10))
  t.ok(used[2]! <= used[0]! + 8, `nothing gathers: ${used.join(', ')} KiB`)
}

function instance(base_commit: string): string {
  return `${JSON.stringify({ instance_id: base_commit, repo: 'acme/lib', base_commit, problem_statement: 'p' })}\n`
}
