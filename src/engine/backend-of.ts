import { UsageError } from '../record/fault.js'
import type { BackendName } from './types.js'

/** The backend of --device. Throws UsageError for one that there is not. */
export function backendOf(device: string): BackendName {
  if (device === 'auto' || device === 'cpu') return 'cpu'
  if (device === 'reference' || device === 'reference-remote') return device
  if (/^cuda(:\d+(-\d+)?)?$/.test(device)) throw new UsageError(`--device ${device}: this cg was built without CUDA: use --device cpu`)
  throw new UsageError(`--device ${device}: not a device: write auto or cpu`)
}
