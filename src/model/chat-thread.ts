import { Worker } from 'node:worker_threads'
import { type Chat, loadChat } from './chat.js'
import type { ModelSettings } from './checkpoint-files.js'
import type { ChatMessage } from './template.js'
import type { Tokenizer } from './tokenizer.js'

/** A model's way with words where texts are long: encoding those leaves this thread free. Results are those of `Chat`. */
export type ChatThread = {
  tokenizer: Tokenizer
  settings: ModelSettings
  maxPositions: number
  stopIds: number[]
  open(messages: readonly ChatMessage[], tools: readonly unknown[] | null): Promise<number[]>
  continue(results: readonly string[]): Promise<number[]>
  close(): Promise<void>
}

/** UTF-16 units above which a text is encoded in the other thread: some 10 ms of work for a large vocabulary. */
const longText = 8192

export type ThreadRequest = { id: number } & (
  | { open: readonly ChatMessage[]; tools: readonly unknown[] | null }
  | { continue: readonly string[] }
)
export type ThreadReply = { id: number; ids?: Int32Array; error?: string }

/** Loads a checkpoint's text side here at once; the other thread loads its own when the first long text comes. */
export function openChatThread(dir: string, options: { thinking: boolean }): ChatThread {
  const chat: Chat = loadChat(dir, options)
  let worker: Worker | undefined
  let nextId = 0
  const waiting = new Map<number, { resolve(ids: number[]): void; reject(error: Error): void }>()

  function start(): Worker {
    const thread = new Worker(new URL('./chat-worker.js', import.meta.url), { workerData: { dir, options } })
    thread.unref()
    thread.on('message', ({ id, ids, error }: ThreadReply) => {
      const caller = waiting.get(id)
      waiting.delete(id)
      if (waiting.size === 0) thread.unref()
      if (ids) caller?.resolve(Array.from(ids))
      else caller?.reject(new Error(error))
    })
    thread.on('error', error => {
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
      worker = undefined
    })
    return thread
  }
  function away(request: Omit<ThreadRequest, 'id'>): Promise<number[]> {
    worker ??= start()
    worker.ref()
    const id = nextId++
    worker.postMessage({ ...request, id })
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
  }

  return {
    tokenizer: chat.tokenizer,
    settings: chat.settings,
    maxPositions: chat.maxPositions,
    stopIds: chat.stopIds,
    async open(messages, tools) {
      const size = messages.reduce((sum, m) => sum + m.content.length, 0)
      return size > longText ? away({ open: messages, tools } as Omit<ThreadRequest, 'id'>) : chat.open(messages, tools)
    },
    async continue(results) {
      const size = results.reduce((sum, text) => sum + text.length, 0)
      return size > longText ? away({ continue: results } as Omit<ThreadRequest, 'id'>) : chat.continue(results)
    },
    async close() {
      await worker?.terminate()
    },
  }
}
