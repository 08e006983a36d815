import { fstatSync } from 'node:fs'

/**
 * Calls `gone` when the reader of standard output has gone away while nothing is being written: Node by itself notices only at the next write, and a stage that
 * waits for its input may wait for hours.
 *
 * Looks once a second through the addon; without an addon it does nothing. Returns what stops the looking.
 */
export function watchReader(gone: () => void): () => void {
  const stat = fstatSync(1)
  if (!stat.isFIFO() && !stat.isSocket()) return () => {}
  let readerGone: ((fd: number) => boolean) | undefined
  let timer: NodeJS.Timeout | undefined = setTimeout(async () => {
    readerGone = await loadPoll()
    if (!readerGone || timer === undefined) return
    timer = setInterval(() => {
      if (readerGone?.(1)) gone()
    }, 1000).unref()
  }, 1000).unref()
  return () => {
    clearTimeout(timer)
    timer = undefined
  }
}

async function loadPoll(): Promise<((fd: number) => boolean) | undefined> {
  try {
    const { loadEngine } = await import('../engine/load.js')
    const engine = await loadEngine()
    return fd => engine.readerGone(fd)
  } catch {
    return undefined
  }
}
