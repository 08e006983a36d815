import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Asked = { path: string; headers: IncomingMessage['headers']; body: Record<string, unknown> }
type Answer = { status?: number; headers?: Record<string, string>; json?: unknown; text?: string } | 'hang' | 'close'

/** A server on this machine that answers as it is told, request by request, the last answer again and again. `asked` keeps what came. */
export async function serve(
  t: { teardown(work: () => unknown): unknown },
  answers: (Answer | ((asked: Asked) => Answer | Promise<Answer>))[],
): Promise<{ base: string; asked: Asked[] }> {
  const asked: Asked[] = []
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const one = { path: request.url!, headers: request.headers, body: text ? JSON.parse(text) : {} }
    asked.push(one)
    const next = answers[Math.min(asked.length, answers.length) - 1]!
    const answer = typeof next === 'function' ? await next(one) : next
    if (answer === 'hang') return
    if (answer === 'close') return request.socket.destroy()
    const { status = 200, headers = {}, json } = answer
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(answer.text ?? JSON.stringify(json))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked }
}
