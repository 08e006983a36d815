import type { PolicyIdentity } from '../record/schema.js'

/** What a table calls a policy that nobody named: its name, with the first letters of its adapter's digest where it has one. */
export function policyLabel({ name, adapter_sha256 }: PolicyIdentity): string {
  return adapter_sha256 === undefined ? name : `${name}@${adapter_sha256.slice(0, 8)}`
}
