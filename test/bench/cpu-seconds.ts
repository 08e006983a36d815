/** CPU seconds, of all threads and of the system for them, that this process spends on `work`: what a busy machine does not spoil. */
export async function cpuSeconds(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}
