import t from 'tap'
import { noFailingDisk } from '../faults/disk.js'
import { everyChange } from '../faults/every-change.js'
import { publishing, spooling } from '../faults/training.js'

t.setTimeout(7_200_000)

t.test('cg-train in a run directory, failing at every change', { skip: noFailingDisk }, async t => {
  await everyChange(t, publishing, all => all, ['ENOSPC', 'EROFS'])
  await everyChange(t, publishing, all => all.filter(({ n }) => n % 3 === 0), ['EDQUOT', 'EIO'])
})

t.test(
  'cg-train sft, failing at every change',
  { skip: noFailingDisk },
  t => everyChange(t, spooling, all => all, ['ENOSPC', 'EDQUOT', 'EIO']), // a disk that is read-only keeps the temporary files
)
