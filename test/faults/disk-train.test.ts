import t from 'tap'
import { matching, noFailingDisk } from './disk.js'
import { everyChange } from './every-change.js'
import { publishing, spooling } from './training.js'

t.setTimeout(280_000)

t.test('cg-train in a run directory, on a disk that fills', { skip: noFailingDisk }, t =>
  everyChange(
    t,
    publishing,
    matching(
      /^write .*run\/run\.json\./,
      /^write .*\.v000001\.unfinished\/optimizer\.safetensors/,
      /^rename .*run\/v000001$/,
      /^write .*run\/steps\.ndjson$/,
      /^rename .*\/out$/,
      /^fsync .*\/steps\.ndjson\..*\.tmp$/,
    ),
    ['ENOSPC'],
  ),
)

t.test('a run directory on a disk that becomes read-only', { skip: noFailingDisk }, t =>
  everyChange(t, publishing, matching(/^mkdir .*\/run$/, /^unlink .*run\/lock\..*\.tmp$/), ['EROFS']),
)

t.test('the rows that cg-train sft keeps in $TMPDIR', { skip: noFailingDisk }, t =>
  everyChange(t, spooling, matching(/^mkdtemp /, /^pwrite64 .*rows/), ['EDQUOT']),
)
