import { parentPort, workerData } from 'node:worker_threads'
import { loadChat } from './chat.js'
import type { ThreadReply, ThreadRequest } from './chat-thread.js'

// The other thread of `openChatThread`: encodes one request after the other.
const { dir, options } = workerData as { dir: string; options: { thinking: boolean } }
const chat = loadChat(dir, options)

parentPort!.on('message', (request: ThreadRequest) => {
  let reply: ThreadReply
  try {
    const ids = 'open' in request ? chat.open(request.open, request.tools) : chat.continue(request.continue)
    reply = { id: request.id, ids: Int32Array.from(ids) }
  } catch (error) {
    reply = { id: request.id, error: (error as Error).message }
  }
  parentPort!.postMessage(reply)
})
