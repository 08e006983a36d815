import { join } from 'node:path'
import t from 'tap'
import { scratch } from '../pipeline/process.js'
import { lastMatching, matching, noFailingDisk } from './disk.js'
import { everyChange } from './every-change.js'
import { keeping, preparing, redirecting, scoring, searching } from './streaming.js'

t.setTimeout(280_000)

t.test('-o and the cache', { skip: noFailingDisk }, t =>
  everyChange(
    t,
    scoring,
    all => [
      ...matching(/^open .*out\.ndjson\./, /^open .*cache\.db$/, /^rename .*out\.ndjson$/)(all),
      ...lastMatching(/^pwrite64 .*cache\.db-wal$/, /^write .*out\.ndjson\./)(all),
    ],
    ['ENOSPC'],
  ),
)

t.test('results that the cache does not take in the end', { skip: noFailingDisk }, t =>
  everyChange(
    t,
    keeping,
    // the last page of the results: the log is synced after it
    all => lastMatching(/^fsync .*cache\.db-wal$/)(all).map(({ n, path }) => ({ n: n - 1, call: 'pwrite64', path })),
    ['ENOSPC'],
  ),
)

t.test('standard output into a file', { skip: noFailingDisk }, t =>
  everyChange(t, redirecting, matching(/^write .*out\.ndjson$/), ['EDQUOT']),
)

t.test('clones, worktrees and their marks', { skip: noFailingDisk }, t =>
  everyChange(
    t,
    preparing(join(scratch(t).dir, 'mirror')),
    matching(/^mkdir .*trees\/acme\+lib$/, /^rename .*acme\+lib\.git$/, /\.lease\./, /^fsync .*\.ready\./),
    ['ENOSPC'],
  ),
)

t.test('leases and results of rollouts', { skip: noFailingDisk }, t =>
  everyChange(t, searching(join(scratch(t).dir, 'mirror')), matching(/\.lease\./, /^pwrite64 .*cache\.db-wal$/), ['EROFS']),
)
