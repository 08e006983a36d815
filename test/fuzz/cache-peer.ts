import { openCache } from '#cg/store/sqlite-cache.js'
import { closed, workOn } from './cache-values.js'

export type Request = { file: string; turn: number; close: boolean }
export type Reply = { outcome: string; wrong?: string }

/** Another process that has the cache open while it is damaged: works on it when asked. */
let open: { file: string; cache: ReturnType<typeof openCache> } | undefined
process.on('message', ({ file, turn, close }: Request) => {
  const reply: Reply = { outcome: '' }
  try {
    if (open?.file !== file) open = { file, cache: openCache({ file, patienceMs: 3000 }) }
    reply.outcome = workOn(open.cache, turn)
    if (close) {
      reply.outcome += closed(open.cache)
      open = undefined
    }
  } catch (error) {
    reply.wrong = (error as Error).stack ?? String(error)
    open = undefined
  }
  process.send!(reply)
})
